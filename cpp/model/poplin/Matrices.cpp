#include "poplin/internal/Matrices.hpp"

#include <numeric>
#include <string>
#include <vector>

#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace poplin::internal {

void checkSquare(const char* where, const poplar::Tensor& a) {
  const auto type = a.elementType();
  const bool is_square = a.rank() >= 2 && a.dim(a.rank() - 1) == a.dim(a.rank() - 2);
  if (is_square && (type == poplar::FLOAT || type == poplar::HALF)) return;
  throw poputil::poplibs_error(std::string("[poplin::") + where +
                               "] needs matrices [..., N, N] of FLOAT or HALF; got " +
                               a.shapeToString() + " of " + type.toString() + ".");
}

poplar::Tensor asItems(const poplar::Tensor& a) {
  return a.rank() == 2 ? a.expand({0}) : a.flatten(0, a.rank() - 2);
}

poplar::Tensor spreadCopy(poplar::Graph& graph, const poplar::Tensor& a,
                          poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext) {
  const auto copy = graph.addVariable(a.elementType(), a.shape(), debugContext);
  poputil::mapTensorLinearly(graph, copy);
  prog.add(poplar::program::Copy(a, copy, false, debugContext));
  return copy;
}

poplar::Tensor numbers(poplar::Graph& graph, std::size_t n,
                       const poplar::DebugContext& debugContext) {
  std::vector<unsigned> values(n);
  std::iota(values.begin(), values.end(), 0u);
  const auto t = graph.addConstant(poplar::UNSIGNED_INT, {n}, values, debugContext);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

}  // namespace poplin::internal
