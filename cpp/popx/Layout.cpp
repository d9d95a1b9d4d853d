#include "popx/Layout.hpp"

#include <cstdint>
#include <vector>

#include "popx/Native.hpp"

namespace popx {
namespace {

std::vector<std::int64_t> stridesOf(const poplar::Tensor& t) {
  return t.view()->isStrided() ? t.view()->strides : native::rowMajorStrides(t.view()->shape);
}

}  // namespace

bool sameLayout(const poplar::Tensor& a, const poplar::Tensor& b) {
  if (a.shape() != b.shape() || a.elementType() != b.elementType()) return false;
  const auto first = stridesOf(a);
  const auto second = stridesOf(b);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (a.dim(static_cast<unsigned>(i)) > 1 && first[i] != second[i]) return false;
  return true;
}

void setLayoutGroup(poplar::Graph& graph, std::uint32_t group) {
  graph.impl().layout_group = group;
}

}  // namespace popx
