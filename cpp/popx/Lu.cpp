#include "popx/Lu.hpp"

#include <tuple>

#include "popx/MatrixBatch.hpp"

namespace popx {

std::vector<Parts> lu(Graph& graph, const Parts& a, Sequence& prog,
                      const DebugContext& debugContext) {
  const batch::Matrices given("popx::lu", a);
  const auto [m, n, k] = std::tuple<double, double, double>(given.m, given.n, given.small);
  const double flops = 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3;
  return batch::emit(graph, "popx.lu", {{a, 2}},
                     {{a[0].shape(), 2, given.complex},
                      {batch::shapeOf(given.leading, {given.small}), 1, false, poplar::INT},
                      batch::status(given)},
                     {}, batch::cost(graph, given, 2 * k, flops), prog, {debugContext, "lu"});
}

poplar::Tensor permutationOfPivots(Graph& graph, const poplar::Tensor& pivots, std::size_t size,
                                   Sequence& prog, const DebugContext& debugContext) {
  batch::checkPivots("popx::permutationOfPivots", pivots, size);
  const auto leading = batch::leading({pivots}, 1);
  // Our estimate: a codelet with 8 cycles a swap, one worker a row.
  const double swaps = 48 * static_cast<double>(pivots.shape().back());
  return batch::emit(graph, "popx.permutationOfPivots", {{{pivots}, 1}},
                     {{batch::shapeOf(leading, {size}), 1, false, poplar::INT}}, {},
                     batch::cost(graph, batch::elementsOf(leading), size, 1, 1, swaps, {}), prog,
                     {debugContext, "permutationOfPivots"})[0][0];
}

}  // namespace popx
