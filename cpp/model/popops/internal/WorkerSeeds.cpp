#include "popops/internal/WorkerSeeds.hpp"

#include <utility>

#include "engine/graph/Emit.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/kernels/random/WorkerSeeds.hpp"

namespace popops::internal {

namespace seeds = ipujax::engine::seeds;
using poplar::Graph;
using poplar::Tensor;

Tensor workerSeeds(Graph& graph) {
  const auto parts = graph.impl().parts;
  auto& hidden = graph.impl().hidden[seeds::hiddenName(parts.count, parts.first_tile)];
  if (!hidden) {
    // replicas of createReplicatedGraph have their own
    Graph top = graph.getTopLevelGraph();
    Graph& whole = parts.count > 1 ? graph : top;
    const std::size_t tiles = whole.getTarget().getNumTiles();
    const std::size_t workers = whole.getTarget().getNumWorkerContexts();
    const Tensor state =
        whole.addVariable(poplar::UNSIGNED_INT, {tiles, workers, seeds::kWords}, "poprand/state");
    for (unsigned tile = 0; tile < tiles; ++tile) whole.setTileMapping(state[tile], tile);
    const auto values = seeds::ofWorkers(tiles * workers, 0xcc55e1b4u, 0xaa99330fu, 0);
    whole.setInitialValue<unsigned>(state, values);
    hidden = state;
  }
  return {&graph.impl(), hidden};
}

Tensor drawnKey(Graph& graph, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext) {
  using ipujax::engine::Access;
  const Tensor key = graph.addVariable(poplar::UNSIGNED_INT, {2}, {debugContext, "key"});
  graph.setTileMapping(key, 0);
  ipujax::engine::StepSpec step;
  step.kernel = "poprand.draw_key";
  step.operands = {{workerSeeds(graph)[0][0], Access::kReadWrite, true}, {key, Access::kWrite}};
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return key;
}

}  // namespace popops::internal
