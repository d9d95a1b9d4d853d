#include "popops/internal/QuarterCast.hpp"

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "popops/internal/ElementWiseCost.hpp"

namespace popops::internal {
namespace {

using ipujax::engine::Access;
using ipujax::engine::HalfBehaviour;
using poplar::Tensor;

/// Costs as casts between halves and bytes. This is our estimate: PopLibs' estimators are for IPUs
/// that convert four quarters in a cycle, which the modelled machine does not.
ipujax::engine::Cost costOf(const poplar::Graph& graph, const Tensor& src, const Tensor& dst) {
  ipujax::engine::Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, dst);
  const double cycles =
      elementwise::castCycles(src.elementType().storage(), dst.elementType().storage(),
                              placed.max_elements_per_tile, target.getNumWorkerContexts());
  addComputeSet(cost, target, cycles, placed.tiles_used);
  cost.vertex_state_bytes = 16;
  cost.code_bytes = 160;
  return cost;
}

}  // namespace

void castQuarters(poplar::Graph& graph, const Tensor& src, const Tensor& dst,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                  bool is_free) {
  const bool to_quarters = dst.hasMetadata();
  const Tensor metadata = (to_quarters ? dst : src).getMetadata().reshape({});
  ipujax::engine::StepSpec step;
  step.kernel = to_quarters ? "popops.cast_to_quarter" : "popops.cast_from_quarter";
  step.operands = {
      {src, Access::kRead, true}, {metadata, Access::kRead}, {dst, Access::kWrite, true}};
  if (to_quarters)
    step.attributes.set("nan_on_overflow",
                        graph.impl().half.overflow != HalfBehaviour::Overflow::kSaturate);
  if (!is_free) step.cost = costOf(graph, src, dst);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

}  // namespace popops::internal
