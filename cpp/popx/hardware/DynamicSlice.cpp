#include "popx/DynamicSlice.hpp"

#include "popops/DynamicSlice.hpp"
#include "popx/hardware/StartIndices.hpp"

namespace popx {
namespace {

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
using Sizes = std::vector<std::size_t>;

/// The offset as popops takes it, clamped so that the slice lies inside. popops refuses invalid
/// dimensions and sizes.
Tensor inside(Graph& graph, const Tensor& t, const Tensor& offset, const Sizes& dims,
              const Sizes& sizes, Sequence& prog, const poplar::DebugContext& debug) {
  if (dims.empty() || offset.numElements() != dims.size() || sizes.size() != dims.size())
    return offset;
  std::vector<int> most;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= t.rank()) return offset;
    most.push_back(static_cast<int>(t.dim(static_cast<unsigned>(dims[i]))) -
                   static_cast<int>(sizes[i]));
  }
  const Tensor wide = starts::wide(graph, offset.flatten(), 0, prog, debug);
  const Tensor clamped = starts::clamped(graph, wide, 0, most, prog, debug);
  return starts::withBatches(graph, clamped, 0, {}, prog, debug);
}

}  // namespace

Tensor dynamicSlice(Graph& graph, const Tensor& t, const Tensor& offset, const Sizes& dims,
                    const Sizes& sizes, Sequence& prog, const poplar::DebugContext& debugContext) {
  const Tensor start = inside(graph, t, offset, dims, sizes, prog, debugContext);
  return popops::dynamicSlice(graph, t, start, dims, sizes, prog, debugContext);
}

void dynamicUpdate(Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offset,
                   const Sizes& dims, const Sizes& sizes, Sequence& prog,
                   const poplar::DebugContext& debugContext) {
  const Tensor start = inside(graph, t, offset, dims, sizes, prog, debugContext);
  popops::dynamicUpdate(graph, t, s, start, dims, sizes, prog, debugContext);
}

}  // namespace popx
