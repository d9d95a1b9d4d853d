#include "popops/SelectScalarFromRows.hpp"

#include <string>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using ipujax::engine::Access;
using ipujax::engine::Cost;

Cost selectCost(const poplar::Graph& graph, const poplar::Tensor& params,
                const poplar::Tensor& indices, const poplar::Tensor& out) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, params);
  const auto rows = static_cast<double>(
      params.dim(1) ? ipujax::engine::ceilDiv(placed.max_elements_per_tile, params.dim(1)) : 0);
  addExchange(cost, target, ipujax::engine::exchangeBetween(graph, indices, out));
  // Estimate after popops' SelectFromInterval codelet: one index compared and one element loaded.
  addComputeSet(cost, target, 11 + 6.0 * (12 + 10 * rows), placed.tiles_used);
  cost.vertex_state_bytes = 24;
  cost.code_bytes = 200;
  return cost;
}

}  // namespace

poplar::Tensor selectScalarFromRows(poplar::Graph& graph, const poplar::Tensor& params,
                                    const poplar::Tensor& indices, poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  const bool types =
      (params.elementType() == poplar::FLOAT || params.elementType() == poplar::HALF) &&
      (indices.elementType() == poplar::UNSIGNED_INT || indices.elementType() == poplar::INT);
  if (!types || params.rank() != 2 || indices.rank() != 1 || indices.dim(0) != params.dim(0)) {
    throw poputil::poplibs_error(
        "[popops::selectScalarFromRows] needs params [n, columns] of FLOAT or HALF and indices [n] "
        "of UNSIGNED_INT; got " +
        params.shapeToString() + " " + params.elementType().toString() + " and " +
        indices.shapeToString() + " " + indices.elementType().toString() +
        ". Reshape or cast them.");
  }
  const auto out = graph.addVariable(params.elementType(), {params.dim(0)}, debugContext);
  poputil::mapTensorLinearly(graph, out);
  ipujax::engine::StepSpec step;
  step.kernel = "popops.select_scalar_from_rows";
  step.operands = {{params, Access::kRead}, {indices, Access::kRead}, {out, Access::kWrite}};
  step.cost = selectCost(graph, params, indices, out);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return out;
}

}  // namespace popops
