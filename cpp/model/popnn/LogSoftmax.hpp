#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popnn {

/// log(softmax(t)) over the last dimension of FLOAT or HALF: x - max - log(sum(exp(x - max))).
/// Sums are kept in FLOAT.
void logSoftmaxInPlace(poplar::Graph& graph, poplar::Tensor t, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});
poplar::Tensor logSoftmax(poplar::Graph& graph, poplar::Tensor t, poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext = {});

}  // namespace popnn
