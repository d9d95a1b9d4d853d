#include "popops/OneHot.hpp"

#include <string>

#include "engine/blas/Arithmetic.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using ipujax::engine::Access;
using ipujax::engine::Cost;

Cost oneHotCost(const poplar::Graph& graph, const poplar::Tensor& encoded) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, encoded);
  if (placed.elements == 0) return cost;
  const auto indices = ipujax::engine::ceilDiv(placed.max_elements_per_tile, encoded.dim(1));
  const auto bytes = static_cast<double>(4 * indices);
  addExchange(cost, target, {bytes * static_cast<double>(placed.tiles_used), bytes});
  // popops: popopsCycleEstimators.cpp: one-hot 11 + 74 per index, after a fill of the output.
  const auto vector = std::max<std::uint64_t>(1, 8 / target.getTypeSize(encoded.elementType()));
  const auto filled =
      ipujax::engine::ceilDiv(placed.max_elements_per_tile, vector * target.getNumWorkerContexts());
  addComputeSet(cost, target,
                11 + 6.0 * (26 + static_cast<double>(filled)) + 74.0 * static_cast<double>(indices),
                placed.tiles_used);
  cost.vertex_state_bytes = 28;
  cost.code_bytes = 250;
  return cost;
}

}  // namespace

void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices,
                  const poplar::Tensor& encoded, poplar::program::Sequence& prog,
                  const poplar::Tensor& on, const poplar::Tensor& off,
                  const poplar::DebugContext& debugContext) {
  const bool good = indices.rank() == 1 && encoded.rank() == 2 &&
                    indices.dim(0) == encoded.dim(0) && on.numElements() == 1 &&
                    off.numElements() == 1 && on.elementType() == encoded.elementType() &&
                    off.elementType() == encoded.elementType() &&
                    indices.elementType() != poplar::BOOL &&
                    ipujax::engine::blas::isInteger(indices.elementType().element());
  if (!good) {
    throw poputil::poplibs_error(
        "[popops::encodeOneHot] needs integer indices [n], encoded [n, classes] and one-element on "
        "and off of encoded's type; got indices " +
        indices.shapeToString() + ", encoded " + encoded.shapeToString() +
        ". Reshape or cast them.");
  }
  ipujax::engine::StepSpec step;
  step.kernel = "popops.one_hot";
  step.operands = {{indices, Access::kRead},
                   {on, Access::kRead},
                   {off, Access::kRead},
                   {encoded, Access::kWrite}};
  step.cost = oneHotCost(graph, encoded);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices,
                  const poplar::Tensor& encoded, poplar::program::Sequence& prog,
                  const poplar::DebugContext& debugContext) {
  const poplar::Type type = encoded.elementType();
  const auto on = graph.addConstant<unsigned>(type, {1}, 1u, {debugContext, "on"});
  const auto off = graph.addConstant<unsigned>(type, {1}, 0u, {debugContext, "off"});
  graph.setTileMapping(on, 0);
  graph.setTileMapping(off, 0);
  encodeOneHot(graph, indices, encoded, prog, on, off, debugContext);
}

}  // namespace popops
