#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Returns a BOOL scalar: whether every element of a BOOL tensor is true. Throws poplibs_error for
/// other types.
poplar::Tensor allTrue(poplar::Graph& graph, const poplar::Tensor& A,
                       poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});

}  // namespace popops
