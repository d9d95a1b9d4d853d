#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// The state of the random generators of all workers, UNSIGNED_INT [tiles, workers, 4]; one per
/// graph. poprand::setSeed and poplar::setHwSeeds set it.
poplar::Tensor workerSeeds(poplar::Graph& graph);

/// A key for stochastic rounding, UNSIGNED_INT [2], drawn anew each time the step runs. Tiles round
/// stochastically without any work, so it costs nothing.
poplar::Tensor drawnKey(poplar::Graph& graph, poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext);

}  // namespace popops::internal
