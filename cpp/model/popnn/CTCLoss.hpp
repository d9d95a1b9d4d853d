#pragma once
#include <utility>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popnn/CTCPlan.hpp"

namespace popnn {
/// Connectionist temporal classification (Graves et al., 2006): the loss -log p(labels | data) over
/// all alignments of labels with blanks and repeats, and its gradient, by the forward and backward
/// recursions in logarithms.
namespace ctc {

/// Options: partialsType, availableMemoryProportion and planConstraints have no effect; sums are
/// FLOAT. Throws poplibs_error for options that no plan can meet.
Plan plan(const poplar::Graph& graph, const poplar::Type& inType, const poplar::Type& outType,
          unsigned batchSize, unsigned maxTime, unsigned maxLabelLength, unsigned numClasses,
          const poplar::OptionFlags& options = {});

/// [maxTime, batchSize, numClasses].
poplar::Tensor createDataInput(poplar::Graph& graph, const poplar::Type& type,
                               const std::size_t batchSize, const std::size_t maxTime,
                               const std::size_t numClasses, const Plan& plan,
                               const poplar::DebugContext& debugContext = {});
/// [batchSize, maxLabelLength].
poplar::Tensor createLabelsInput(poplar::Graph& graph, const poplar::Type& type,
                                 const std::size_t batchSize, const std::size_t maxLabelLength,
                                 const Plan& plan, const poplar::DebugContext& debugContext = {});

/// The loss [batch] and gradient [maxTime, batch, classes] of outType, from log-probabilities.
/// dataLengths and labelLengths are [batch]; steps past a sequence's length have no gradient. If no
/// alignment exists, the loss is infinite and the gradient 0.
///
/// Option includeSoftmaxGradient, "true" (the default): the gradient is that of the logits, softmax
/// minus posterior; "false": that of the log-probabilities, minus posterior.
std::pair<poplar::Tensor, poplar::Tensor> calcLossAndGradientLogProbabilities(
    poplar::Graph& graph, const poplar::Type& outType, const poplar::Tensor& logProbs,
    const poplar::Tensor& labels, const poplar::Tensor& dataLengths,
    const poplar::Tensor& labelLengths, poplar::program::Sequence& prog, const unsigned blankClass,
    const Plan& plan, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});
/// The same from logits, with the gradient of the logits.
std::pair<poplar::Tensor, poplar::Tensor> calcLossAndGradientLogits(
    poplar::Graph& graph, const poplar::Type& outType, const poplar::Tensor& logits,
    const poplar::Tensor& labels, const poplar::Tensor& dataLengths,
    const poplar::Tensor& labelLengths, poplar::program::Sequence& prog, const unsigned blankClass,
    const Plan& plan, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});

}  // namespace ctc
}  // namespace popnn
