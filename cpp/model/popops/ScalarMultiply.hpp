#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// a * b, where b has one element. A FLOAT b scales a HALF a without being rounded; the result is
/// HALF, and out of place the two may be swapped. Throws poplibs_error for other types that differ.
poplar::Tensor scalarMultiply(poplar::Graph& graph, const poplar::Tensor& a,
                              const poplar::Tensor& b, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext = {},
                              const poplar::OptionFlags& options = {});
void scalarMultiplyInplace(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {});

}  // namespace popops
