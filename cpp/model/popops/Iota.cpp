#include "popops/Iota.hpp"

#include <cmath>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace engine = ipujax::engine;

void iotaAlong(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, std::int64_t start,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  if (dim >= t.rank() || t.elementType() == poplar::BOOL) {
    throw poputil::poplibs_error("[popops::iota] needs a tensor of numbers with dimension " +
                                 std::to_string(dim) + "; got " + t.elementType().toString() + " " +
                                 t.shapeToString() + ". Check the tensor.");
  }
  engine::StepSpec spec;
  spec.kernel = "popops.iota";
  spec.operands = {{t, engine::Access::kWrite, false}};
  spec.attributes.set("dim", std::int64_t{dim}).set("start", start);
  if (t.numElements() > 0) {
    // popopsCycleEstimators.cpp: 14 + 3 worker cycles a vector.
    const poplar::Target& target = graph.getTarget();
    const engine::Placement at = engine::placementOf(graph, t);
    const double vector = target.getVectorWidth(t.elementType());
    const double worker = std::ceil(static_cast<double>(at.max_elements_per_tile) / 6 / vector);
    engine::addComputeSet(spec.cost, target, 11 + 6 * (14 + 3 * worker), at.tiles_used);
  }
  spec.cost.vertex_state_bytes = 6 * 12;
  spec.cost.code_bytes = 120;  // our estimate
  engine::emit(graph, prog, std::move(spec), {debugContext, "iota"});
}

}  // namespace popops
