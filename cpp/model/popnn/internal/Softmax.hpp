#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popnn::internal {

/// The softmax over the last dimension times `factor`, in place.
void softmaxInPlace(poplar::Graph& graph, const poplar::Tensor& t, bool stable, float factor,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debug);

/// Its gradient with factor 1: act * (outGradient - sum(act * outGradient)), `act` the result.
poplar::Tensor softmaxGradient(poplar::Graph& graph, const poplar::Tensor& act,
                               const poplar::Tensor& outGradient, poplar::program::Sequence& prog,
                               const poplar::DebugContext& debug);

}  // namespace popnn::internal
