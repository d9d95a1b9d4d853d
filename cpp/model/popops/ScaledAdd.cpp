#include "popops/ScaledAdd.hpp"

#include <string>

#include "popops/ElementWise.hpp"
#include "popops/Expr.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popops/internal/Map.hpp"
#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"
#include "poputil/internal/ParseOptions.hpp"

namespace popops {

namespace {
using expr::_1;
using expr::_2;
using expr::_3;
using expr::_4;
using expr::_5;
using poplar::Tensor;

/// Writes `expression` of (A, B, scales) to A, at the scaled add vertex's cycles plus `extra`.
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
  if (a.elementType() == scale.elementType()) return placeholder;
  return expr::Cast(placeholder, a.elementType());
}
Tensor scalar(const Tensor& scale) {
  if (scale.numElements() == 1) return scale.flatten()[0];
  throw poputil::poplibs_error("[popops::scaledAddTo] needs a scale of one element; got " +
                               scale.shapeToString() + ". Use popops::map for other scales.");
}
/// poplibs: the vertex for aX + bY takes 12 cycles more.
constexpr double kTwoScales = 12;

/// The relative error of a scale in HALF above which products of HALF are computed in FLOAT.
/// Source: PopLibs, lib/popops/ScaledAdd.cpp and codelets/CheckAccuracyWhenCast.hpp.
double toleranceOf(const poplar::OptionFlags& options) {
  double tolerance = 1e-6;
  bool optimise_for_speed = false;  // only constrains where operands lie
  const poplibs::OptionSpec spec{
      {"optimizeForSpeed", poplibs::OptionHandler::createWithBool(optimise_for_speed)},
      {"scaleFloatToHalfTolerance", poplibs::OptionHandler::createWithDouble(tolerance)}};
  poputil::internal::parseOptions(spec, options, "[popops::scaledAddTo]",
                                  "Use optimizeForSpeed or scaleFloatToHalfTolerance.");
  return tolerance;
}

bool isExact(const poplar::Graph& graph, float scale, double tolerance) {
  return scale == 0 || poputil::checkAccuracyWhenCast(graph.getTarget(), scale, poplar::FLOAT,
                                                      poplar::HALF, tolerance);
}
expr::Expr inHalf(const expr::Expr& scale) {
  return expr::Cast(expr::Cast(scale, poplar::HALF), poplar::FLOAT);
}
expr::Expr isExact(const expr::Expr& scale, double tolerance) {
  return expr::Lte(expr::Abs(inHalf(scale) - scale),
                   expr::Abs(scale) * expr::Const(static_cast<float>(tolerance)));
}
expr::Expr asFloat(const expr::Expr& e) { return expr::Cast(e, poplar::FLOAT); }
expr::Expr asHalf(const expr::Expr& e) { return expr::Cast(e, poplar::HALF); }

/// scale * B as the vertex computes it. Where A is HALF, B is HALF or has been rounded to it.
expr::Expr product(const poplar::Graph& graph, const Tensor& a, const Tensor& b, float scale,
                   double tolerance) {
  if (a.elementType() != poplar::HALF || isExact(graph, scale, tolerance))
    return second(a, b) * expr::Const(scale);
  return asHalf(asFloat(second(a, b)) * expr::Const(scale));
}

/// A + sign * scaleB * B.
void addScaled(poplar::Graph& graph, const Tensor& a, const Tensor& b, const Tensor& given,
               bool subtracts, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  const double tolerance = toleranceOf(options);
  Tensor by = scalar(given);
  expr::Any added = second(a, b) * scale(_3, a, by);
  if (a.elementType() == poplar::HALF && b.elementType() == poplar::HALF &&
      by.elementType() == poplar::FLOAT) {
    // The product of two halves is exact in FLOAT, so one formula serves both kinds of scales.
    by = map(graph, expr::Select(inHalf(_1), _1, isExact(_1, tolerance)), {by}, prog,
             {debugContext, "scale"});
    added = asHalf(asFloat(_2) * _3);
  }
  const expr::Any sum = subtracts ? expr::Any(_1 - added) : expr::Any(_1 + added);
  emitScaled(graph, sum, {a, b, by}, 0, prog, debugContext);
}

/// scaleA * A + scaleB * B with constant scales.
void addScaled(poplar::Graph& graph, const Tensor& a, float scale_a, const Tensor& b, float scale_b,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
               const poplar::OptionFlags& options) {
  const double tolerance = toleranceOf(options);
  const auto by_a = expr::Const(scale_a);
  const auto by_b = expr::Const(scale_b);
  const bool exact = a.elementType() != poplar::HALF ||
                     (isExact(graph, scale_a, tolerance) && isExact(graph, scale_b, tolerance));
  const expr::Any sum = exact
                            ? expr::Any(_1 * by_a + second(a, b) * by_b)
                            : expr::Any(asHalf(asFloat(_1) * by_a + asFloat(second(a, b)) * by_b));
  emitScaled(graph, sum, {a, b}, kTwoScales, prog, debugContext);
}

/// scaleA * A + sign * scaleB * B. If a FLOAT scale is not exact in HALF, the sum is computed in
/// FLOAT and rounded once.
void addScaled(poplar::Graph& graph, const Tensor& a, const Tensor& given_a, const Tensor& b,
               const Tensor& given_b, bool subtracts, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  const double tolerance = toleranceOf(options);
  const Tensor by_a = scalar(given_a), by_b = scalar(given_b);
  const auto sum = [&](const expr::Expr& x, const expr::Expr& y) {
    return subtracts ? expr::Any(x - y) : expr::Any(x + y);
  };
  const expr::Any same = sum(_1 * scale(_3, a, by_a), second(a, b) * scale(_4, a, by_b));
  if (a.elementType() != poplar::HALF ||
      (by_a.elementType() == poplar::HALF && by_b.elementType() == poplar::HALF)) {
    emitScaled(graph, same, {a, b, by_a, by_b}, kTwoScales, prog, debugContext);
    return;
  }
  const Tensor exact =
      map(graph, isExact(asFloat(_1), tolerance) && isExact(asFloat(_2), tolerance), {by_a, by_b},
          prog, {debugContext, "scales"});
  const expr::Any once =
      asHalf(sum(asFloat(_1) * asFloat(_3), asFloat(second(a, b)) * asFloat(_4)));
  emitScaled(graph, expr::Select(same, once, _5), {a, b, by_a, by_b, exact}, kTwoScales, prog,
             debugContext);
}

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
                 const poplar::OptionFlags& options) {
  emitScaled(graph, _1 + product(graph, A, B, scaleB, toleranceOf(options)), {A, B}, 0, prog,
             debugContext);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor B, Tensor scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags& options) {
  addScaled(graph, A, B, scaleB, false, prog, debugContext, options);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, float scaleA, Tensor B, float scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags& options) {
  addScaled(graph, A, scaleA, B, scaleB, prog, debugContext, options);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags& options) {
  addScaled(graph, A, scaleA, B, scaleB, false, prog, debugContext, options);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, Tensor B, float scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags& options) {
  emitScaled(graph, _1 - product(graph, A, B, scaleB, toleranceOf(options)), {A, B}, 0, prog,
             debugContext);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, Tensor B, Tensor scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags& options) {
  addScaled(graph, A, B, scaleB, true, prog, debugContext, options);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, float scaleA, Tensor B, float scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags& options) {
  addScaled(graph, A, scaleA, B, -scaleB, prog, debugContext, options);
}

void scaledSubtractFrom(poplar::Graph& graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                        const poplar::OptionFlags& options) {
  addScaled(graph, A, scaleA, B, scaleB, true, prog, debugContext, options);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, float scaleA, Tensor B, float scaleB,
                 poplar::program::Sequence& prog, ScaledAddSpecialisation speciality,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  needHalf(speciality, A, B);
  if (speciality == ScaledAddSpecialisation::DEFAULT)
    return scaledAddTo(graph, A, scaleA, B, scaleB, prog, debugContext, options);
  toleranceOf(options);  // throws for others; the scales are HALF
  emitScaled(graph, _1 * expr::Const(1 - scaleA) + _2 * expr::Const(scaleB), {A, B}, kTwoScales,
             prog, debugContext);
}

void scaledAddTo(poplar::Graph& graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                 poplar::program::Sequence& prog, ScaledAddSpecialisation speciality,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  needHalf(speciality, A, B);
  if (speciality == ScaledAddSpecialisation::DEFAULT)
    return scaledAddTo(graph, A, scaleA, B, scaleB, prog, debugContext, options);
  toleranceOf(options);  // throws for others; the scales are HALF
  const Tensor by_a = scalar(scaleA), by_b = scalar(scaleB);
  emitScaled(graph, _1 - _1 * scale(_3, A, by_a) + second(A, B) * scale(_4, A, by_b),
             {A, B, by_a, by_b}, kTwoScales, prog, debugContext);
}

}  // namespace popops
