#include "popx/Pad.hpp"

#include "popx/Native.hpp"
#include "popx/checks/Pad.hpp"

namespace popx {
namespace {

using native::Access;
using native::Cost;
using Integers = std::vector<std::int64_t>;

Cost fillCost(const poplar::Graph& graph, const poplar::Tensor& out) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = native::placementOf(graph, out);
  if (placed.elements == 0) return cost;
  const auto bytes = target.getTypeSize(out.elementType());
  const auto each =
      native::ceilDiv(placed.max_elements_per_tile * bytes, 8 * target.getNumWorkerContexts());
  // popops: popopsCycleEstimators.cpp, Fill: 26 and one cycle for each 64-bit vector of a worker.
  addComputeSet(cost, target, 6.0 * (26 + static_cast<double>(each)), placed.tiles_used);
  cost.vertex_state_bytes = 12;
  cost.code_bytes = 150;
  return cost;
}

}  // namespace

poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& value,
                   const Integers& low, const Integers& high, const Integers& interior,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const padding::Plan plan = padding::planOf(t, value, low, high, interior);
  const poplar::Tensor& kept = plan.kept;
  if (kept.shape() == plan.shape) return kept;

  const auto out = graph.addVariable(t.elementType(), plan.shape,
                                     poplar::VariableMappingMethod::LINEAR, debugContext);
  native::StepSpec spec;
  spec.kernel = "popx.pad";
  spec.operands = {
      {kept, Access::kRead}, {value.reshape({}), Access::kRead}, {out, Access::kWrite}};
  spec.attributes.set("start", plan.start).set("step", plan.step);
  spec.cost = fillCost(graph, out);
  if (kept.numElements() > 0) spec.cost += native::copyCost(graph, kept, plan.placeIn(out));
  native::emit(graph, prog, std::move(spec), debugContext);
  return out;
}

}  // namespace popx
