#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace poplar {

/// The generator state of each worker of each tile, as poprand::setSeed sets it: UNSIGNED_INT
/// [tiles, workers, 4]. The model draws from the state of the first worker of the first tile; the
/// other states differ from it, and are only stored.
Tensor getHwSeeds(Graph& graph, program::Sequence& prog, const DebugContext& debugContext = {});
/// Sets that state; getHwSeeds then returns it. Restoring seeds from getHwSeeds repeats the numbers
/// drawn after that call. Throws poplar_error for another shape or type.
void setHwSeeds(Graph& graph, const Tensor& hwSeeds, program::Sequence& prog,
                const DebugContext& debugContext = {});

}  // namespace poplar
