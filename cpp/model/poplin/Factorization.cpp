#include <algorithm>

#include "poplin/experimental/LuFactorization.hpp"
#include "poplin/experimental/QRFactorization.hpp"
#include "poplin/internal/Matrices.hpp"
#include "popops/Cast.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Loop.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace poplin::experimental {
namespace {

namespace expr = popops::expr;
using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

/// The reflection that makes the rows of column `step` below the diagonal zero: v [m, 1] and
/// 2 / (v . v), or 0 where they are zero already.
std::pair<Tensor, Tensor> reflection(Graph& graph, const Tensor& a, const Tensor& row,
                                     const Tensor& step, Sequence& body,
                                     const DebugContext& context) {
  const expr::Const zero(a.elementType(), 0.0f), one(a.elementType(), 1.0f);
  const auto column = popops::dynamicSlice(graph, a, step, {1}, {1}, body, context);
  const auto pivot = popops::dynamicSlice(graph, column, step, {0}, {1}, body, context);
  const auto rest = popops::map(graph, expr::Select(expr::_1, zero, expr::_2 >= expr::_3),
                                {column, row, step}, body, context);
  const auto squares =
      popops::reduce(graph, rest, {0}, popops::Operation::SQUARE_ADD, body, context).expand({0});
  // v = x + sign(x0) |x| e0, so that no nearly equal numbers are subtracted.
  const expr::Select sign(one, expr::Neg(one), expr::_4 >= zero);
  const auto v = popops::map(
      graph, expr::Select(expr::_1 + sign * expr::Sqrt(expr::_5), expr::_1, expr::_2 == expr::_3),
      {rest, row, step, pivot, squares}, body, context);
  const auto norm =
      popops::reduce(graph, v, {0}, popops::Operation::SQUARE_ADD, body, context).expand({0});
  const expr::Const two(a.elementType(), 2.0f);
  const auto scale = popops::map(graph, expr::Select(two / expr::_1, zero, expr::_1 > zero), {norm},
                                 body, context);
  return {v, scale};
}

/// t -= scale * v (v^T t) for t [m, k].
void reflect(Graph& graph, const Tensor& t, const Tensor& v, const Tensor& scale, Sequence& body,
             const DebugContext& context) {
  const auto terms = popops::mul(graph, t, v, body, context);
  const auto dots =
      popops::reduce(graph, terms, {0}, popops::Operation::ADD, body, context).expand({0});
  popops::mapInPlace(graph, expr::_1 - expr::_2 * expr::_3 * expr::_4, {t, v, dots, scale}, body,
                     context);
}

}  // namespace

std::pair<Tensor, Tensor> LUFactorization(Graph& graph, Tensor& input, Sequence& seq,
                                          const DebugContext& debugContext) {
  const poplar::Type type = input.elementType();
  if (input.rank() != 2 || (type != poplar::FLOAT && type != poplar::HALF)) {
    throw poputil::poplibs_error(
        "[poplin::LUFactorization] needs a matrix [M, N] of FLOAT or HALF; got " +
        input.shapeToString() + " of " + type.toString() + ". Cast it.");
  }
  const DebugContext context{debugContext, "LUFactorization"};
  if (type == poplar::HALF) {  // errors of elimination grow too fast for a half's 11 bits
    Tensor wide = popops::cast(graph, input, poplar::FLOAT, seq, context);
    const auto [lower, upper] = LUFactorization(graph, wide, seq, debugContext);
    return {popops::cast(graph, lower, type, seq, context),
            popops::cast(graph, upper, type, seq, context)};
  }
  const std::size_t m = input.dim(0), n = input.dim(1);
  const Tensor upper = internal::spreadCopy(graph, input, seq, context);
  const Tensor lower = graph.addVariable(poplar::FLOAT, {m, m},
                                         poplar::VariableMappingMethod::LINEAR, {context, "lower"});
  const Tensor row = internal::numbers(graph, m, context).expand({1});
  popops::mapWithOutput(graph, expr::Cast(expr::_1 == expr::_2, poplar::FLOAT),
                        {row, row.dimShuffle({1, 0})}, lower, seq, context);
  if (input.numElements() == 0) return {lower, upper};
  seq.add(popops::countedLoop(
      graph, std::min(m, n),
      [&](const Tensor& step) {
        Sequence body;
        const auto column = popops::dynamicSlice(graph, upper, step, {1}, {1}, body, context);
        const auto pivots = popops::dynamicSlice(graph, upper, step, {0}, {1}, body, context);
        const auto pivot = popops::dynamicSlice(graph, column, step, {0}, {1}, body, context);
        const auto below = popops::map(
            graph, expr::Select(expr::_1 / expr::_2, expr::Const(0.0f), expr::_3 > expr::_4),
            {column, pivot, row, step}, body, context);
        popops::mapInPlace(graph, expr::_1 - expr::_2 * expr::_3, {upper, below, pivots}, body,
                           context);
        const auto diagonal =
            popops::map(graph, expr::Select(expr::Const(1.0f), expr::_1, expr::_2 == expr::_3),
                        {below, row, step}, body, context);
        popops::dynamicUpdate(graph, lower, diagonal, step, {1}, {1}, body, context);
        // Zero the rounding errors below the diagonal.
        const auto kept =
            popops::map(graph, expr::Select(expr::_1, expr::Const(0.0f), expr::_2 <= expr::_3),
                        {column, row, step}, body, context);
        popops::dynamicUpdate(graph, upper, kept, step, {1}, {1}, body, context);
        return body;
      },
      context));
  return {lower, upper};
}

std::array<Tensor, 2> createQRFactorizationMatrices(Graph& graph, const poplar::Type& type,
                                                    std::size_t m, std::size_t n,
                                                    const DebugContext& debugContext) {
  constexpr auto kLinear = poplar::VariableMappingMethod::LINEAR;
  return {graph.addVariable(type, {m, n}, kLinear, {debugContext, "A"}),
          graph.addVariable(type, {m, m}, kLinear, {debugContext, "Q"})};
}

void QRFactorization(Graph& graph, Tensor& A, Tensor& Q, Sequence& prog,
                     const DebugContext& debugContext, const poplar::OptionFlags&) {
  const bool is_matrix = A.rank() == 2 && A.dim(0) >= A.dim(1);
  const bool is_square = Q.rank() == 2 && Q.dim(0) == Q.dim(1);
  if (!is_matrix || !is_square || Q.dim(0) != A.dim(0) || Q.elementType() != A.elementType()) {
    throw poputil::poplibs_error(
        "[poplin::QRFactorization] needs A [M, N] with M at least N and Q [M, M] of its type; "
        "got " +
        A.shapeToString() + " and " + Q.shapeToString() + ".");
  }
  if (A.numElements() == 0) return;
  const DebugContext context{debugContext, "QRFactorization"};
  const Tensor row = internal::numbers(graph, A.dim(0), context).expand({1});
  const expr::Const zero(A.elementType(), 0.0f);
  prog.add(popops::countedLoop(
      graph, A.dim(1),
      [&](const Tensor& step) {
        Sequence body;
        const auto [v, scale] = reflection(graph, A, row, step, body, context);
        reflect(graph, A, v, scale, body, context);
        reflect(graph, Q.dimShuffle({1, 0}), v, scale, body, context);
        const auto column = popops::dynamicSlice(graph, A, step, {1}, {1}, body, context);
        const auto kept = popops::map(graph, expr::Select(expr::_1, zero, expr::_2 <= expr::_3),
                                      {column, row, step}, body, context);
        popops::dynamicUpdate(graph, A, kept, step, {1}, {1}, body, context);
        return body;
      },
      context));
}

}  // namespace poplin::experimental
