#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popnn/CTCLoss.hpp"

namespace popx {

/// The losses [batch] of outType that popnn::ctc::calcLossAndGradientLogits (from logits) or
/// calcLossAndGradientLogProbabilities returns, without the gradient; PopLibs has no such function.
/// The model counts PopLibs' vertices of alpha and beta up to the step where they meet.
poplar::Tensor ctcLoss(poplar::Graph& graph, const poplar::Type& outType,
                       const poplar::Tensor& data, const poplar::Tensor& labels,
                       const poplar::Tensor& dataLengths, const poplar::Tensor& labelLengths,
                       poplar::program::Sequence& prog, unsigned blankClass,
                       const popnn::ctc::Plan& plan, bool areLogits,
                       const poplar::DebugContext& debugContext = {});

}  // namespace popx
