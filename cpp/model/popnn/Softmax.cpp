#include "popnn/internal/Softmax.hpp"

#include <cmath>
#include <string>

#include "popnn/LogSoftmax.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popnn {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
using popops::Operation;
namespace pe = popops::expr;
using pe::_1;
using pe::_2;
using pe::_3;

/// [rows][classes] of FLOAT or HALF.
Tensor rowsOf(const Tensor& t, const char* function) {
  const poplar::Type type = t.elementType();
  if (t.rank() == 0 || t.numElements() == 0 || (type != poplar::FLOAT && type != poplar::HALF))
    throw poputil::poplibs_error(
        "[popnn::" + std::string(function) + "] needs FLOAT or HALF with a last dimension; got " +
        type.toString() + " " + t.shapeToString() + ". Cast or reshape it.");
  const std::size_t classes = t.dim(t.rank() - 1);
  return t.reshape({t.numElements() / classes, classes});
}

/// One value for each row, [rows][1].
Tensor reduceRows(Graph& graph, const Tensor& rows, Operation op, const poplar::Type& type,
                  Sequence& prog, const DebugContext& debug) {
  return popops::reduce(graph, rows, type, {1}, op, prog, debug).expand({1});
}

}  // namespace

namespace internal {

void softmaxInPlace(Graph& graph, const Tensor& t, bool stable, float factor, Sequence& prog,
                    const DebugContext& debug) {
  const Tensor rows = rowsOf(t, "softmax");
  if (stable) {
    const Tensor most =
        reduceRows(graph, rows, Operation::MAX, t.elementType(), prog, {debug, "max"});
    popops::mapInPlace(graph, pe::Exp(_1 - _2), {rows, most}, prog, {debug, "exp"});
  } else {
    popops::mapInPlace(graph, pe::Exp(_1), {rows}, prog, {debug, "exp"});
  }
  const Tensor sum = reduceRows(graph, rows, Operation::ADD, poplar::FLOAT, prog, {debug, "sum"});
  const Tensor inverse = popops::map(graph, pe::Cast(pe::Const(factor) / _1, t.elementType()),
                                     {sum}, prog, {debug, "inverse"});
  popops::mulInPlace(graph, rows, inverse, prog, {debug, "scale"});
}

Tensor softmaxGradient(Graph& graph, const Tensor& act, const Tensor& outGradient, Sequence& prog,
                       const DebugContext& debug) {
  const Tensor rows = rowsOf(act, "softmax"), grads = rowsOf(outGradient, "softmax");
  const Tensor products = popops::mul(graph, rows, grads, prog, {debug, "products"});
  const Tensor sum =
      reduceRows(graph, products, Operation::ADD, poplar::FLOAT, prog, {debug, "sum"});
  const Tensor mean =
      popops::map(graph, pe::Cast(_1, act.elementType()), {sum}, prog, {debug, "mean"});
  return popops::map(graph, _1 * (_2 - _3), {rows, grads, mean}, prog, {debug, "gradient"})
      .reshape(act.shape());
}

}  // namespace internal

void logSoftmaxInPlace(Graph& graph, Tensor t, Sequence& prog, const DebugContext& debugContext) {
  const Tensor rows = rowsOf(t, "logSoftmax");
  const poplar::Type type = t.elementType();
  const Tensor most = reduceRows(graph, rows, Operation::MAX, type, prog, {debugContext, "max"});
  popops::subInPlace(graph, rows, most, prog, {debugContext, "centre"});
  const Tensor powers = popops::exp(graph, rows, prog, {debugContext, "exp"});
  const Tensor sum =
      reduceRows(graph, powers, Operation::ADD, poplar::FLOAT, prog, {debugContext, "sum"});
  const Tensor log =
      popops::map(graph, pe::Cast(pe::Log(_1), type), {sum}, prog, {debugContext, "log"});
  popops::subInPlace(graph, rows, log, prog, {debugContext, "result"});
}

Tensor logSoftmax(Graph& graph, Tensor t, Sequence& prog, const DebugContext& debugContext) {
  const Tensor out = graph.clone(t, debugContext);
  prog.add(poplar::program::Copy(t, out, false, debugContext));
  logSoftmaxInPlace(graph, out, prog, debugContext);
  return out;
}

}  // namespace popnn
