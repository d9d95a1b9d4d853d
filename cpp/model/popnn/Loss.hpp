#pragma once

namespace popnn {

enum LossType { SUM_SQUARED_LOSS, CROSS_ENTROPY_LOSS };

}  // namespace popnn

// Codelets include this for the type.
#ifndef __POPC__
#include <utility>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popops/EncodingConstants.hpp"

namespace popnn {

/// The loss of each row of modelOutputs [batch, classes] FLOAT or HALF, and its gradient. For
/// CROSS_ENTROPY_LOSS modelOutputs are probabilities (a softmax's results) times
/// modelOutputScaling, `expected` [batch] are INT or UNSIGNED_INT labels, and deltas are those of
/// the softmax's input times deltasScale / modelOutputScaling. A row whose label is
/// MASKED_LABEL_CODE has no loss and no deltas. For SUM_SQUARED_LOSS `expected` is also labels, or
/// values of modelOutputs' shape and type. Scales are tensors of one element, 1 if omitted.
poplar::program::Program calcLoss(poplar::Graph& graph, const poplar::Tensor& modelOutputs,
                                  const poplar::Tensor& expected, const poplar::Tensor& loss,
                                  const poplar::Tensor& deltas, const poplar::Tensor& deltasScale,
                                  const poplar::Tensor& modelOutputScaling, LossType lossType,
                                  const poplar::DebugContext& debugContext = {});
poplar::program::Program calcLoss(poplar::Graph& graph, const poplar::Tensor& modelOutputs,
                                  const poplar::Tensor& expected, const poplar::Tensor& loss,
                                  const poplar::Tensor& deltas, LossType lossType,
                                  const poplar::DebugContext& debugContext = {});
/// The same, and adds to numCorrect as calcAccuracy does.
poplar::program::Program calcLoss(poplar::Graph& graph, const poplar::Tensor& modelOutputs,
                                  const poplar::Tensor& expected, const poplar::Tensor& loss,
                                  const poplar::Tensor& deltas, const poplar::Tensor& deltasScale,
                                  const poplar::Tensor& modelOutputScaling,
                                  const poplar::Tensor& numCorrect, LossType lossType,
                                  const poplar::DebugContext& debugContext = {});
poplar::program::Program calcLoss(poplar::Graph& graph, const poplar::Tensor& modelOutputs,
                                  const poplar::Tensor& expected, const poplar::Tensor& loss,
                                  const poplar::Tensor& deltas, const poplar::Tensor& numCorrect,
                                  LossType lossType, const poplar::DebugContext& debugContext = {});

/// Adds to numCorrect, of one element and an integer type, how many rows have their largest output
/// at their label in `expected` [batch]. Set it to zero before the first batch.
poplar::program::Program calcAccuracy(poplar::Graph& graph, const poplar::Tensor& modelOutputs,
                                      const poplar::Tensor& expected,
                                      const poplar::Tensor& numCorrect,
                                      const poplar::DebugContext& debugContext = {});

/// The UNSIGNED_INT index of the largest (smallest) element of each row of [batch, n], the first of
/// equal ones; and these elements.
poplar::Tensor argMax(poplar::Graph& graph, const poplar::Tensor& input,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> maxAndArgMax(
    poplar::Graph& graph, const poplar::Tensor& input, poplar::program::Sequence& prog,
    const poplar::DebugContext& debugContext = {});
poplar::Tensor argMin(poplar::Graph& graph, const poplar::Tensor& input,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> minAndArgMin(
    poplar::Graph& graph, const poplar::Tensor& input, poplar::program::Sequence& prog,
    const poplar::DebugContext& debugContext = {});

/// The K largest elements of each row of `input` [N][C], as [N][1][K], which is PopLibs' shape;
/// `indices` becomes their UNSIGNED_INT indices. The order is descending even without `sort`.
poplar::Tensor topK(poplar::Graph& graph, const poplar::Tensor& input, poplar::Tensor& indices,
                    unsigned K, bool sort, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext = {});

}  // namespace popnn
#endif
