#include "popx/CtcLoss.hpp"

namespace popx {

poplar::Tensor ctcLoss(poplar::Graph& graph, const poplar::Type& outType,
                       const poplar::Tensor& data, const poplar::Tensor& labels,
                       const poplar::Tensor& dataLengths, const poplar::Tensor& labelLengths,
                       poplar::program::Sequence& prog, unsigned blankClass,
                       const popnn::ctc::Plan& plan, bool areLogits,
                       const poplar::DebugContext& debugContext) {
  const auto calculate = areLogits ? popnn::ctc::calcLossAndGradientLogits
                                   : popnn::ctc::calcLossAndGradientLogProbabilities;
  return calculate(graph, outType, data, labels, dataLengths, labelLengths, prog, blankClass, plan,
                   debugContext, {})
      .first;
}

}  // namespace popx
