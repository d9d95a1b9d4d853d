#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Whether any element of a FLOAT or HALF tensor is NaN: a BOOL scalar.
poplar::Tensor hasNaN(poplar::Graph& graph, const poplar::Tensor& src,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});
/// The same for NaN and infinities.
poplar::Tensor hasNaNOrInf(poplar::Graph& graph, const poplar::Tensor& src,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {});

}  // namespace popops
