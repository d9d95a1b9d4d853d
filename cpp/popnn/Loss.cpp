#include "popnn/Loss.hpp"

#include "poplar/exceptions.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Encoding.hpp"
#include "popops/Reduce.hpp"
#include "popops/TopK.hpp"
#include "poputil/exceptions.hpp"

namespace popnn {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Program;
using poplar::program::Sequence;
namespace pe = popops::expr;

/// The types that this function's tensors may have, or an error that names it.
void checkShapes(const Tensor& outputs, const Tensor& expected, LossType type) {
  const bool labels = type == CROSS_ENTROPY_LOSS;
  const auto& wanted = outputs.shape();
  const bool fits =
      outputs.rank() == 2 &&
      (labels ? expected.rank() == 1 && expected.dim(0) == wanted[0]
              : expected.shape() == wanted && expected.elementType() == outputs.elementType());
  if (fits) return;
  throw poputil::poplibs_error(
      "[popnn::calcLoss] needs outputs [batch, classes] and " +
      std::string(labels ? "labels [batch]" : "expected values of the same shape and type") +
      "; got " + outputs.shapeToString() + " and " + expected.shapeToString() +
      ". Reshape or cast them.");
}

void sumSquared(Graph& graph, const Tensor& outputs, const Tensor& expected, const Tensor& loss,
                const Tensor& deltas, Sequence& prog, const DebugContext& debug) {
  popops::subWithOutput(graph, outputs, expected, deltas, prog, {debug, "deltas"});
  const Tensor squares =
      popops::map(graph, pe::Square(pe::_1) * 0.5f, {deltas}, prog, {debug, "squares"});
  popops::reduceWithOutput(graph, squares, loss, {1}, popops::Operation::ADD, prog,
                           {debug, "loss"});
}

/// Per row: one-hot labels, all 0 where the label is masked; and 1 where it is not.
struct Labels {
  Tensor one_hot;
  Tensor counts;
};

Labels labelsOf(Graph& graph, const Tensor& outputs, const Tensor& expected, Sequence& prog,
                const DebugContext& debug) {
  Labels labels;
  labels.one_hot = graph.clone(outputs, {debug, "labels"});
  popops::encodeOneHot(graph, expected, labels.one_hot, prog, {debug, "labels"});
  labels.counts =
      popops::reduce(graph, labels.one_hot, {1}, popops::Operation::MAX, prog, {debug, "counts"});
  return labels;
}

void crossEntropy(Graph& graph, const Tensor& outputs, const Tensor& expected, const Tensor& loss,
                  const Tensor& deltas, const Tensor& deltasScale, const Tensor& scaling,
                  Sequence& prog, const DebugContext& debug) {
  const Labels labels = labelsOf(graph, outputs, expected, prog, debug);
  const Tensor counts = labels.counts.expand({1});
  const poplar::Type type = outputs.elementType();
  const Tensor scale = popops::cast(graph, scaling.reshape({1, 1}), type, prog, {debug, "scale"});
  const Tensor factor =
      popops::cast(graph, deltasScale.reshape({1, 1}), type, prog, {debug, "deltasScale"});
  // softmax - one-hot, with the softmax given times `scale`
  popops::mapWithOutput(graph, (pe::_1 * pe::_3 - pe::_2 * pe::_4) * pe::_5 / pe::_4,
                        {outputs, labels.one_hot, counts, scale, factor}, deltas, prog,
                        {debug, "deltas"});
  const float least = type == poplar::HALF ? 6.103515625e-5f : 1.17549435e-38f;
  const Tensor terms =
      popops::map(graph, pe::_2 * -pe::Log(pe::Max(pe::_1 / pe::_3, pe::Const(type, least))),
                  {outputs, labels.one_hot, scale}, prog, {debug, "terms"});
  popops::reduceWithOutput(graph, terms, loss, {1}, popops::Operation::ADD, prog, {debug, "loss"});
}

Sequence lossProgram(Graph& graph, const Tensor& outputs, const Tensor& expected,
                     const Tensor& loss, const Tensor& deltas, const Tensor& deltasScale,
                     const Tensor& scaling, LossType type, const DebugContext& debug) {
  checkShapes(outputs, expected, type);
  Sequence prog(debug);
  if (type == SUM_SQUARED_LOSS) {
    sumSquared(graph, outputs, expected, loss, deltas, prog, debug);
  } else {
    crossEntropy(graph, outputs, expected, loss, deltas, deltasScale, scaling, prog, debug);
  }
  return prog;
}

Tensor one(Graph& graph, const DebugContext& debug) {
  const Tensor t = graph.addConstant(poplar::FLOAT, {1}, 1.0f, {debug, "one"});
  graph.setTileMapping(t, 0);
  return t;
}

std::pair<Tensor, Tensor> extreme(Graph& graph, const Tensor& input, bool largest, Sequence& prog,
                                  const DebugContext& debug) {
  auto [values, indices] = popops::topKWithPermutation(
      graph, prog, input, {1, largest, popops::SortOrder::DESCENDING, true}, debug);
  return {values.squeeze({input.rank() - std::size_t{1}}),
          indices.squeeze({input.rank() - std::size_t{1}})};
}

}  // namespace

Program calcLoss(Graph& graph, const Tensor& modelOutputs, const Tensor& expected,
                 const Tensor& loss, const Tensor& deltas, const Tensor& deltasScale,
                 const Tensor& modelOutputScaling, LossType lossType,
                 const DebugContext& debugContext) {
  return lossProgram(graph, modelOutputs, expected, loss, deltas, deltasScale, modelOutputScaling,
                     lossType, debugContext);
}

Program calcLoss(Graph& graph, const Tensor& modelOutputs, const Tensor& expected,
                 const Tensor& loss, const Tensor& deltas, LossType lossType,
                 const DebugContext& debugContext) {
  const Tensor scale = one(graph, debugContext);
  return lossProgram(graph, modelOutputs, expected, loss, deltas, scale, scale, lossType,
                     debugContext);
}

Program calcLoss(Graph& graph, const Tensor& modelOutputs, const Tensor& expected,
                 const Tensor& loss, const Tensor& deltas, const Tensor& deltasScale,
                 const Tensor& modelOutputScaling, const Tensor& numCorrect, LossType lossType,
                 const DebugContext& debugContext) {
  Sequence prog = lossProgram(graph, modelOutputs, expected, loss, deltas, deltasScale,
                              modelOutputScaling, lossType, debugContext);
  prog.add(calcAccuracy(graph, modelOutputs, expected, numCorrect, debugContext));
  return prog;
}

Program calcLoss(Graph& graph, const Tensor& modelOutputs, const Tensor& expected,
                 const Tensor& loss, const Tensor& deltas, const Tensor& numCorrect,
                 LossType lossType, const DebugContext& debugContext) {
  const Tensor scale = one(graph, debugContext);
  return calcLoss(graph, modelOutputs, expected, loss, deltas, scale, scale, numCorrect, lossType,
                  debugContext);
}

Program calcAccuracy(Graph& graph, const Tensor& modelOutputs, const Tensor& expected,
                     const Tensor& numCorrect, const DebugContext& debugContext) {
  if (numCorrect.numElements() != 1 || expected.rank() != 1)
    throw poputil::poplibs_error(
        "[popnn::calcAccuracy] needs labels [batch] and numCorrect of one element; got " +
        expected.shapeToString() + " and " + numCorrect.shapeToString() + ". Reshape them.");
  Sequence prog(debugContext);
  const Tensor best = argMax(graph, modelOutputs, prog, {debugContext, "best"});
  const Tensor same = popops::eq(graph, best.reinterpret(expected.elementType()), expected, prog,
                                 {debugContext, "same"});
  const Tensor counts =
      popops::cast(graph, same, numCorrect.elementType(), prog, {debugContext, "counts"});
  popops::reduceWithOutput(graph, counts, numCorrect.reshape({}), {0}, popops::Operation::ADD, prog,
                           {debugContext, "numCorrect"});
  return prog;
}

Tensor argMax(Graph& graph, const Tensor& input, Sequence& prog, const DebugContext& debugContext) {
  return extreme(graph, input, true, prog, debugContext).second;
}
std::pair<Tensor, Tensor> maxAndArgMax(Graph& graph, const Tensor& input, Sequence& prog,
                                       const DebugContext& debugContext) {
  return extreme(graph, input, true, prog, debugContext);
}
Tensor argMin(Graph& graph, const Tensor& input, Sequence& prog, const DebugContext& debugContext) {
  return extreme(graph, input, false, prog, debugContext).second;
}
std::pair<Tensor, Tensor> minAndArgMin(Graph& graph, const Tensor& input, Sequence& prog,
                                       const DebugContext& debugContext) {
  return extreme(graph, input, false, prog, debugContext);
}

Tensor topK(Graph& graph, const Tensor& input, Tensor& indices, unsigned K, bool, Sequence& prog,
            const DebugContext& debugContext) {
  auto [values, order] = popops::topKWithPermutation(
      graph, prog, input, {K, true, popops::SortOrder::DESCENDING, true}, debugContext);
  indices = order;
  return values;
}

}  // namespace popnn
