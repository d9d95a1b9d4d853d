#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace poplar {

/// The state of the generators of each worker of each tile, as poprand::setSeed sets it:
/// UNSIGNED_INT [tiles, workers, 4]. The model draws from that of the first worker of the first
/// tile; the others differ from it and are kept.
Tensor getHwSeeds(Graph& graph, program::Sequence& prog, const DebugContext& debugContext = {});
/// Sets that state: getHwSeeds then gives it back, and after seeds of getHwSeeds what was drawn
/// then is drawn again. Throws poplar_error for another shape or type.
void setHwSeeds(Graph& graph, const Tensor& hwSeeds, program::Sequence& prog,
                const DebugContext& debugContext = {});

}  // namespace poplar
