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

/// Whether `expected` is labels [batch]; for a sum of squares it may be the expected values.
bool isLabels(const Tensor& outputs, const Tensor& expected) {
  return expected.rank() == 1 && expected.dim(0) == outputs.dim(0) &&
         (expected.elementType() == poplar::INT || expected.elementType() == poplar::UNSIGNED_INT);
}

void checkShapes(const Tensor& outputs, const Tensor& expected, LossType type) {
  const bool values = type == SUM_SQUARED_LOSS && expected.shape() == outputs.shape() &&
                      expected.elementType() == outputs.elementType();
  if (outputs.rank() == 2 && (values || isLabels(outputs, expected))) return;
  throw poputil::poplibs_error(
      "[popnn::calcLoss] needs outputs [batch, classes] and INT or UNSIGNED_INT labels [batch]" +
      std::string(type == SUM_SQUARED_LOSS ? ", or values of the outputs' shape and type" : "") +
      "; got " + outputs.shapeToString() + " and " + expected.elementType().toString() + " " +
      expected.shapeToString() + ". Reshape or cast them.");
}

/// Rows that are 1 at their label, and 0 where that is masked.
Tensor oneHot(Graph& graph, const Tensor& outputs, const Tensor& labels, Sequence& prog,
              const DebugContext& debug) {
  const Tensor rows = graph.clone(outputs, {debug, "labels"});
  popops::encodeOneHot(graph, labels, rows, prog, {debug, "labels"});
  return rows;
}

void sumSquared(Graph& graph, const Tensor& outputs, const Tensor& expected, const Tensor& loss,
                const Tensor& deltas, Sequence& prog, const DebugContext& debug) {
  const Tensor values =
      isLabels(outputs, expected) ? oneHot(graph, outputs, expected, prog, debug) : expected;
  popops::subWithOutput(graph, outputs, values, deltas, prog, {debug, "deltas"});
  const Tensor squares =
      popops::map(graph, pe::Square(pe::_1) * 0.5f, {deltas}, prog, {debug, "squares"});
  popops::reduceWithOutput(graph, squares, loss, {1}, popops::Operation::ADD, prog,
                           {debug, "loss"});
}

void crossEntropy(Graph& graph, const Tensor& outputs, const Tensor& expected, const Tensor& loss,
                  const Tensor& deltas, const Tensor& deltasScale, const Tensor& scaling,
                  Sequence& prog, const DebugContext& debug) {
  const Tensor labels = oneHot(graph, outputs, expected, prog, debug);
  // 1 where the label is not masked
  const Tensor counts =
      popops::reduce(graph, labels, {1}, popops::Operation::MAX, prog, {debug, "counts"})
          .expand({1});
  const poplar::Type type = outputs.elementType();
  const Tensor scale = popops::cast(graph, scaling.reshape({1, 1}), type, prog, {debug, "scale"});
  // In float, because the quotient of two scales may exceed HALF.
  const Tensor factor = popops::map(
      graph, pe::Cast(pe::Cast(pe::_1, poplar::FLOAT) / pe::Cast(pe::_2, poplar::FLOAT), type),
      {deltasScale.reshape({1, 1}), scaling.reshape({1, 1})}, prog, {debug, "deltasScale"});
  // softmax - one-hot, with the softmax given times `scale`
  popops::mapWithOutput(graph, (pe::_1 * pe::_3 - pe::_2 * pe::_4) * pe::_5,
                        {outputs, labels, counts, scale, factor}, deltas, prog, {debug, "deltas"});
  const float least = type == poplar::HALF ? 6.103515625e-5f : 1.17549435e-38f;
  const Tensor terms =
      popops::map(graph, pe::_2 * -pe::Log(pe::Max(pe::_1 / pe::_3, pe::Const(type, least))),
                  {outputs, labels, scale}, prog, {debug, "terms"});
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
  popops::reduceWithOutput(graph, counts, numCorrect.reshape({}), {0},
                           {popops::Operation::ADD, true}, prog, {debugContext, "numCorrect"});
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
  indices = order.expand({1});
  return values.expand({1});
}

}  // namespace popnn
