#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// The state of the random generators of all workers, UNSIGNED_INT [tiles, workers, 4]; one for the
/// graph. What poprand::setSeed and poplar::setHwSeeds set.
poplar::Tensor workerSeeds(poplar::Graph& graph);

/// A key of stochastic rounding, UNSIGNED_INT [2], another one at each call of the generators.
/// Tiles round at random without any work, so it costs nothing.
poplar::Tensor drawnKey(poplar::Graph& graph, poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext);

}  // namespace popops::internal
