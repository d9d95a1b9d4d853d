#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace poplar {

/// A copy of the state of the generators, as poprand::setSeed sets it: UNSIGNED_INT [4]. An IPU has
/// one for each worker of each tile; the model has one for the graph.
Tensor getHwSeeds(Graph& graph, program::Sequence& prog, const DebugContext& debugContext = {});
/// Takes such a copy back: what is drawn then is drawn again. Throws poplar_error for another
/// shape.
void setHwSeeds(Graph& graph, const Tensor& hwSeeds, program::Sequence& prog,
                const DebugContext& debugContext = {});

}  // namespace poplar
