#include "popx/Lu.hpp"

#include <tuple>

#include "popx/hardware/ItemStep.hpp"

namespace popx {

std::vector<Parts> lu(Graph& graph, const Parts& a, Sequence& prog,
                      const DebugContext& debugContext) {
  const batch::Matrices given("popx::lu", a);
  const auto [m, n, k] = std::tuple<double, double, double>(given.m, given.n, given.small);
  ItemStep step(graph, "popx::lu", given.items, prog, {debugContext, "lu"});
  const auto factors = step.copy(a, 2);
  const auto pivots = step.room(poplar::INT, given.small);
  const auto status = step.status();
  step.run("Lu", instanceFor("Lu", given.complex),
           {{"a", factors}, {"pivots", pivots}, {"status", status}},
           {{"m", given.m}, {"n", given.n}}, 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3);
  return {partsOf(factors, a[0].shape(), given.complex),
          partsOf(pivots, batch::shapeOf(given.leading, {given.small}), false),
          partsOf(status, given.leading, false)};
}

poplar::Tensor permutationOfPivots(Graph& graph, const poplar::Tensor& pivots, std::size_t size,
                                   Sequence& prog, const DebugContext& debugContext) {
  batch::checkPivots("popx::permutationOfPivots", pivots, size);
  const auto leading = batch::leading({pivots}, 1);
  ItemStep step(graph, "popx::permutationOfPivots", batch::elementsOf(leading), prog,
                {debugContext, "permutationOfPivots"});
  const auto order = step.room(poplar::INT, size);
  step.run("Lu", "PivotPermutation", {{"order", order}, {"pivots", step.copy({pivots}, 1)}}, {},
           static_cast<double>(2 * (size + pivots.shape().back())));
  return order.reshape(batch::shapeOf(leading, {size}));
}

}  // namespace popx
