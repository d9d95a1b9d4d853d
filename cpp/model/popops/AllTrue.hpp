#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Whether every element of a BOOL tensor is true: a BOOL scalar. Throws poplibs_error for another
/// type.
poplar::Tensor allTrue(poplar::Graph& graph, const poplar::Tensor& A,
                       poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});

}  // namespace popops
