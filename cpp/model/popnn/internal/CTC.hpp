#pragma once
#include <string>
#include <tuple>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popnn/CTCPlan.hpp"
#include "popops/Expr.hpp"

namespace popnn::ctc {

/// maxLabelLength 0: a decoder's plan, with a beam width.
class Plan::Impl {
 public:
  std::size_t batchSize = 0, maxTime = 0, numClasses = 0, maxLabelLength = 0, beamwidth = 0;
  bool isDecoder = false;
  auto key() const {
    return std::tie(batchSize, maxTime, numClasses, maxLabelLength, beamwidth, isDecoder);
  }
};

}  // namespace popnn::ctc

namespace popnn::internal {

/// Stands for the logarithm of 0: sums and products with 0 stay finite.
constexpr float kLogZero = -1e30f;

/// log(sum(exp(terms))) of each element.
popops::expr::Any logAdd(const std::vector<popops::expr::Any>& terms);

/// Throws unless data [T][B][C] and the blank fit the plan.
void checkCtcData(const poplar::Tensor& data, const ctc::Plan& plan, bool isDecoder,
                  unsigned blankClass);

/// Data as FLOAT, with logarithms of 0 as kLogZero.
poplar::Tensor ctcData(poplar::Graph& graph, const poplar::Tensor& data,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debug);

/// Indices or lengths as UNSIGNED_INT. Throws poplibs_error unless they have `shape`.
poplar::Tensor ctcIndices(poplar::Graph& graph, const poplar::Tensor& t,
                          const std::vector<std::size_t>& shape, const char* what,
                          poplar::program::Sequence& prog, const poplar::DebugContext& debug);

/// The losses [B] alone, from logits or log-probabilities, otherwise as
/// popnn::ctc::calcLossAndGradientLogits.
poplar::Tensor ctcLoss(poplar::Graph& graph, const poplar::Type& outType,
                       const poplar::Tensor& data, const poplar::Tensor& labels,
                       const poplar::Tensor& dataLengths, const poplar::Tensor& labelLengths,
                       poplar::program::Sequence& prog, unsigned blankClass, const ctc::Plan& plan,
                       bool areLogits, const poplar::DebugContext& debug);

/// Checks partialsType, availableMemoryProportion and planConstraints, which have no effect. Throws
/// poplibs_error if no plan can meet them: no memory, a split into 0 parts or an unknown split.
void checkCtcOptions(const poplar::OptionFlags& options);

/// 0, 1, ... n - 1 as UNSIGNED_INT.
poplar::Tensor ctcCount(poplar::Graph& graph, std::size_t n, const poplar::DebugContext& debug);

/// A constant of `shape` filled with `value`.
poplar::Tensor ctcConstant(poplar::Graph& graph, const std::vector<std::size_t>& shape, float value,
                           const poplar::DebugContext& debug);

}  // namespace popnn::internal
