#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popnn/CTCLoss.hpp"

namespace popx {

/// The losses [batch] of outType that popnn::ctc::calcLossAndGradientLogits gives (from logits) or
/// calcLossAndGradientLogProbabilities, without a gradient. The model counts the recursion forwards
/// alone, of which it keeps the last step; PopLibs has no such function.
poplar::Tensor ctcLoss(poplar::Graph& graph, const poplar::Type& outType,
                       const poplar::Tensor& data, const poplar::Tensor& labels,
                       const poplar::Tensor& dataLengths, const poplar::Tensor& labelLengths,
                       poplar::program::Sequence& prog, unsigned blankClass,
                       const popnn::ctc::Plan& plan, bool areLogits,
                       const poplar::DebugContext& debugContext = {});

}  // namespace popx
