#pragma once
#include <tuple>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popnn/CTCPlan.hpp"

namespace popnn {
/// Decodes the predictions of a network with CTC loss by prefix beam search (Hannun et al., 2014):
/// after each step the `beamwidth` most probable label sequences remain, with the alignments that
/// end in a blank and those that do not summed separately. A width of 1 is a greedy search over
/// labels.
namespace ctc_infer {

/// Options: partialsType, availableMemoryProportion and planConstraints have no effect; sums are
/// FLOAT. Throws poplibs_error for options that no plan can meet.
ctc::Plan plan(const poplar::Graph& graph, const poplar::Type& inType, unsigned batchSize,
               unsigned maxTime, unsigned numClasses, unsigned beamwidth,
               const poplar::OptionFlags& options = {});

/// [maxTime, batchSize, numClasses].
poplar::Tensor createDataInput(poplar::Graph& graph, const poplar::Type& type,
                               const std::size_t batchSize, const std::size_t maxTime,
                               const std::size_t numClasses, const ctc::Plan& plan,
                               const poplar::DebugContext& debugContext = {});

/// The topPaths most probable label sequences that remain, the best first: -log(probability)
/// [batch, topPaths] of logProbs' type, lengths [batch, topPaths] and labels
/// [batch, topPaths, maxTime], UNSIGNED_INT; after its length a sequence holds blankClass. If there
/// are fewer sequences than beams, the missing ones have an infinite first value. dataLengths is
/// [batch]; topPaths is at most the beam width, which is that of the plan.
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor> beamSearchDecoderLogProbabilities(
    poplar::Graph& graph, const poplar::Tensor& logProbs, const poplar::Tensor& dataLengths,
    poplar::program::Sequence& prog, unsigned blankClass, unsigned beamwidth, unsigned topPaths,
    const ctc::Plan& plan, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor> beamSearchDecoderLogits(
    poplar::Graph& graph, const poplar::Tensor& logits, const poplar::Tensor& dataLengths,
    poplar::program::Sequence& prog, unsigned blankClass, unsigned beamwidth, unsigned topPaths,
    const ctc::Plan& plan, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {});

}  // namespace ctc_infer
}  // namespace popnn
