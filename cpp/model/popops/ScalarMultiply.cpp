#include "popops/ScalarMultiply.hpp"

#include "popops/ElementWise.hpp"
#include "popops/Expr.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

using poplar::Tensor;

Tensor scalarMultiply(poplar::Graph& graph, const Tensor& a, const Tensor& b,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                      const poplar::OptionFlags& options) {
  if (a.numElements() == 1 && a.elementType() == poplar::FLOAT && b.elementType() == poplar::HALF)
    return scalarMultiply(graph, b, a, prog, debugContext, options);
  const bool mixed = a.elementType() == poplar::HALF && b.elementType() == poplar::FLOAT;
  if (b.numElements() != 1 || (!mixed && a.elementType() != b.elementType()))
    throw poputil::poplibs_error(
        "[popops::scalarMultiply] needs a scalar of a's type, or FLOAT where a is HALF; got " +
        b.shapeToString() + " of " + b.elementType().toString() + " for " +
        a.elementType().toString() + ". Cast or slice it.");
  Tensor scale = b.reshape({});
  scale.broadcastToMatch(a.shape());
  if (!mixed) return mul(graph, a, scale, prog, debugContext);
  using namespace expr;
  return map(graph, expr::Cast(expr::Mul(expr::Cast(_1, poplar::FLOAT), _2), poplar::HALF),
             {a, scale}, prog, debugContext);
}

void scalarMultiplyInplace(poplar::Graph& graph, const Tensor& a, const Tensor& b,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext,
                           const poplar::OptionFlags& options) {
  if (a.elementType() != poplar::HALF && a.elementType() != b.elementType())
    throw poputil::poplibs_error("[popops::scalarMultiplyInplace] needs the type of b in a; got " +
                                 a.elementType().toString() + " and " + b.elementType().toString() +
                                 ". Multiply out of place.");
  const auto made = scalarMultiply(graph, a, b, prog, debugContext, options);
  prog.add(poplar::program::Copy(made, a));
}

}  // namespace popops
