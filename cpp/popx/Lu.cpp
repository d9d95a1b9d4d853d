#include "popx/Lu.hpp"

#include <algorithm>

#include "poplar/exceptions.hpp"

namespace popx {

std::vector<Parts> lu(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  batch::check("popx::lu", a, 2);
  const auto leading = batch::leading(a, 2);
  const std::uint64_t m = a[0].shape()[a[0].rank() - 2];
  const std::uint64_t n = a[0].shape().back();
  const std::uint64_t small = std::min(m, n);
  const double k = static_cast<double>(small);
  const double flops =
      2 * static_cast<double>(m * n) * k - static_cast<double>(m + n) * k * k + 2 * k * k * k / 3;
  return batch::emit(graph, "popx.lu", {{a, 2}},
                     {{a[0].shape(), 2, a.size() == 2},
                      {batch::shapeOf(leading, {small}), 1, false, poplar::INT},
                      {leading, 0, false, poplar::INT}},
                     {},
                     batch::cost(graph, batch::product(leading), m, n, 2 * k, flops, a.size() == 2),
                     prog, {debugContext, "lu"});
}

poplar::Tensor permutationOfPivots(poplar::Graph& graph, const poplar::Tensor& pivots,
                                   std::size_t size, poplar::program::Sequence& prog,
                                   const poplar::DebugContext& debugContext) {
  if (pivots.elementType() != poplar::INT || pivots.rank() == 0 || pivots.shape().back() > size) {
    throw poplar::poplar_error("[popx::permutationOfPivots] needs INT pivots, at most " +
                               std::to_string(size) + " a row; got " +
                               pivots.elementType().toString() + " " + pivots.shapeToString() +
                               ". Pass the pivots of popx::lu, minus 1.");
  }
  const auto leading = batch::leading({pivots}, 1);
  // Our estimate: a codelet with 8 cycles a swap, one worker a row.
  const double swaps = 48 * static_cast<double>(pivots.shape().back());
  return batch::emit(graph, "popx.permutationOfPivots", {{{pivots}, 1}},
                     {{batch::shapeOf(leading, {size}), 1, false, poplar::INT}}, {},
                     batch::cost(graph, batch::product(leading), size, 1, 1, swaps, false), prog,
                     {debugContext, "permutationOfPivots"})[0][0];
}

}  // namespace popx
