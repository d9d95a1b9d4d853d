#include "popops/ScaledAdd.hpp"

#include <utility>

#include "popops/Expr.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popops/internal/Map.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace {
using expr::_1;
using expr::_2;
using expr::_3;
using expr::_4;
using poplar::Tensor;

/// `expression` of (A, B, scales) into A, as the scaled add vertex: its cycles and `extra` ones.
void emitScaled(poplar::Graph& graph, const expr::Expr& expression, const std::vector<Tensor>& ts,
                double extra, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext) {
  const Tensor& a = ts[0];
  if (a.shape() != ts[1].shape())
    throw poputil::poplibs_error("[popops::scaledAddTo] needs tensors of one shape; got " +
                                 a.shapeToString() + " and " + ts[1].shapeToString() +
                                 ". Broadcast one of them first.");
  const unsigned workers = graph.getTarget().getNumWorkerContexts();
  internal::mapWithOutputs(graph, {expression}, ts, {a}, prog, debugContext,
                           [=, type = a.elementType().element()](std::uint64_t n) {
                             return elementwise::scaledAddCycles(type, n, workers) + extra;
                           });
}

expr::Expr second(const Tensor& a, const Tensor& b) {
  if (a.elementType() == b.elementType()) return _2;
  return expr::Cast(_2, a.elementType());
}
expr::Expr scale(const expr::Expr& placeholder, const Tensor& a, const Tensor& scale) {
  if (scale.numElements() != 1)
    throw poputil::poplibs_error("[popops::scaledAddTo] needs a scale of one element; got " +
                                 scale.shapeToString() + ". Use popops::map for other scales.");
  if (a.elementType() == scale.elementType()) return placeholder;
  return expr::Cast(placeholder, a.elementType());
}
/// poplibs: the vertex for aX + bY takes 12 cycles more.
constexpr double kTwoScales = 12;

void needHalf(ScaledAddSpecialisation speciality, const Tensor& a, const Tensor& b) {
  if (speciality == ScaledAddSpecialisation::DEFAULT ||
      (a.elementType() == poplar::HALF && b.elementType() == poplar::HALF))
    return;
  throw poputil::poplibs_error("[popops::scaledAddTo] needs HALF for X_MINUS_AX_PLUS_BY; got " +
                               a.elementType().toString() + " and " + b.elementType().toString() +
                               ". Cast both or use DEFAULT.");
}
}  // namespace

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor B, float scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags&) {
  emitScaled(graph, _1 + second(A, B) * expr::Const(scaleB), {A, B}, 0, prog, debugContext);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor B, Tensor scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags&) {
  emitScaled(graph, _1 + second(A, B) * scale(_3, A, scaleB), {A, B, scaleB.flatten()[0]}, 0, prog,
             debugContext);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, float scaleA, Tensor B, float scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags&) {
  emitScaled(graph, _1 * expr::Const(scaleA) + second(A, B) * expr::Const(scaleB), {A, B},
             kTwoScales, prog, debugContext);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags&) {
  emitScaled(graph, _1 * scale(_3, A, scaleA) + second(A, B) * scale(_4, A, scaleB),
             {A, B, scaleA.flatten()[0], scaleB.flatten()[0]}, kTwoScales, prog, debugContext);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, Tensor B, float scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags&) {
  emitScaled(graph, _1 - second(A, B) * expr::Const(scaleB), {A, B}, 0, prog, debugContext);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, Tensor B, Tensor scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags&) {
  emitScaled(graph, _1 - second(A, B) * scale(_3, A, scaleB), {A, B, scaleB.flatten()[0]}, 0, prog,
             debugContext);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, float scaleA, Tensor B, float scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags& options) {
  scaledAddTo(graph, std::move(A), scaleA, std::move(B), -scaleB, prog, debugContext, options);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags&) {
  emitScaled(graph, _1 * scale(_3, A, scaleA) - second(A, B) * scale(_4, A, scaleB),
             {A, B, scaleA.flatten()[0], scaleB.flatten()[0]}, kTwoScales, prog, debugContext);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, float scaleA, Tensor B, float scaleB,
                 poplar::program::Sequence& prog, ScaledAddSpecialisation speciality,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  needHalf(speciality, A, B);
  const bool minus = speciality == ScaledAddSpecialisation::X_MINUS_AX_PLUS_BY;
  scaledAddTo(graph, std::move(A), minus ? 1 - scaleA : scaleA, std::move(B), scaleB, prog,
              debugContext, options);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                 poplar::program::Sequence& prog, ScaledAddSpecialisation speciality,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  needHalf(speciality, A, B);
  if (speciality == ScaledAddSpecialisation::DEFAULT) {
    scaledAddTo(graph, std::move(A), std::move(scaleA), std::move(B), std::move(scaleB), prog,
                debugContext, options);
    return;
  }
  emitScaled(graph, _1 - _1 * scale(_3, A, scaleA) + second(A, B) * scale(_4, A, scaleB),
             {A, B, scaleA.flatten()[0], scaleB.flatten()[0]}, kTwoScales, prog, debugContext);
}

}  // namespace popops
