#include "poplin/TriangularSolve.hpp"

#include "poplin/internal/Matrices.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Loop.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {
namespace {

namespace expr = popops::expr;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

/// Swaps the last two dimensions.
Tensor transposed(const Tensor& a) {
  const auto rank = static_cast<unsigned>(a.rank());
  return a.dimRoll(rank - 1, rank - 2);
}

void check(const Tensor& a, const Tensor& b, bool left) {
  internal::checkSquare("triangularSolve", a);
  const bool ranks = b.rank() == a.rank() && b.elementType() == a.elementType();
  bool agree = ranks && b.dim(b.rank() - (left ? 2 : 1)) == a.dim(a.rank() - 1);
  for (std::size_t d = 0; agree && d + 2 < a.rank(); ++d) agree = a.dim(d) == b.dim(d);
  if (agree) return;
  throw poputil::poplibs_error("[poplin::triangularSolve] needs b " +
                               std::string(left ? "[..., N, K]" : "[..., K, N]") + " for a " +
                               a.shapeToString() + " of its type; got " + b.shapeToString() +
                               " of " + b.elementType().toString() + ".");
}

/// Overwrites b [items, n, k] with the solution for the lower triangles a [items, n, n].
void solveLower(Graph& graph, const Tensor& a, const Tensor& b, bool unit, Sequence& prog,
                const DebugContext& debugContext) {
  const std::size_t n = a.dim(1);
  if (b.numElements() == 0) return;
  const Tensor row = internal::numbers(graph, n, debugContext).expand({1});  // [n, 1]
  prog.add(popops::countedLoop(
      graph, n,
      [&](const Tensor& step) {
        Sequence body;
        const auto column = popops::dynamicSlice(graph, a, step, {2}, {1}, body, debugContext);
        auto solved = popops::dynamicSlice(graph, b, step, {1}, {1}, body, debugContext);
        if (!unit) {
          const auto pivot =
              popops::dynamicSlice(graph, column, step, {1}, {1}, body, debugContext);
          popops::divInPlace(graph, solved, pivot, body, debugContext);
          popops::dynamicUpdate(graph, b, solved, step, {1}, {1}, body, debugContext);
        }
        popops::mapInPlace(
            graph, expr::Select(expr::_1 - expr::_2 * expr::_3, expr::_1, expr::_4 > expr::_5),
            {b, column, solved, row, step}, body, debugContext);
        return body;
      },
      debugContext));
}

}  // namespace

Tensor createTriangularSolveInputLHS(Graph& graph, const Type& inputType, const Type&,
                                     const Shape& aShape, const Shape&, bool,
                                     const DebugContext& debugContext, const OptionFlags&,
                                     PlanningCache*) {
  return graph.addVariable(inputType, aShape, poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor createTriangularSolveInputLHS(Graph& graph, const Type& inputType, const Type& outputType,
                                     const Shape& aShape, const Shape& bShape, bool leftSide,
                                     std::size_t, const DebugContext& debugContext,
                                     const OptionFlags& options, PlanningCache* cache) {
  return createTriangularSolveInputLHS(graph, inputType, outputType, aShape, bShape, leftSide,
                                       debugContext, options, cache);
}

Tensor createTriangularSolveInputRHS(Graph& graph, const Type& inputType, const Type&, const Shape&,
                                     const Shape& bShape, bool, const DebugContext& debugContext,
                                     const OptionFlags&, PlanningCache*) {
  return graph.addVariable(inputType, bShape, poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor createTriangularSolveInputRHS(Graph& graph, const Type& inputType, const Type& outputType,
                                     const Shape& aShape, const Shape& bShape, bool leftSide,
                                     std::size_t, const DebugContext& debugContext,
                                     const OptionFlags& options, PlanningCache* cache) {
  return createTriangularSolveInputRHS(graph, inputType, outputType, aShape, bShape, leftSide,
                                       debugContext, options, cache);
}

Tensor triangularMask(Graph& graph, const Tensor& a, bool lower, bool unitDiagonal, Sequence& prog,
                      const DebugContext& debugContext) {
  internal::checkSquare("triangularMask", a);
  const DebugContext context{debugContext, "triangularMask"};
  const Tensor column = internal::numbers(graph, a.dim(a.rank() - 1), context);
  const expr::Const zero(a.elementType(), 0.0f), one(a.elementType(), 1.0f);
  const expr::Any inside =
      lower ? expr::Any(expr::_2 >= expr::_3) : expr::Any(expr::_2 <= expr::_3);
  expr::Any kept = expr::Select(expr::_1, zero, inside);
  if (unitDiagonal) kept = expr::Select(one, kept, expr::_2 == expr::_3);
  return popops::map(graph, kept, {a, column.expand({1}), column}, prog, context);
}

Tensor triangularSolve(Graph& graph, const Tensor& a, const Tensor& b, bool leftSide, bool lower,
                       bool unitDiagonal, Sequence& prog, const DebugContext& debugContext,
                       const OptionFlags&, PlanningCache*) {
  check(a, b, leftSide);
  const DebugContext context{debugContext, "triangularSolve"};
  const Tensor out = internal::spreadCopy(graph, b, prog, context);
  // X A = B is A^T X^T = B^T, and an upper triangle read backwards is a lower one.
  Tensor triangle = internal::asItems(leftSide ? a : transposed(a));
  Tensor solution = internal::asItems(leftSide ? out : transposed(out));
  if (lower != leftSide) {
    triangle = triangle.reverse(1).reverse(2);
    solution = solution.reverse(1);
  }
  solveLower(graph, triangle, solution, unitDiagonal, prog, context);
  return out;
}

Tensor triangularSolve(Graph& graph, const Tensor& a, const Tensor& b, bool leftSide, bool lower,
                       bool unitDiagonal, std::size_t, Sequence& prog,
                       const DebugContext& debugContext, const OptionFlags& options,
                       PlanningCache* cache) {
  return triangularSolve(graph, a, b, leftSide, lower, unitDiagonal, prog, debugContext, options,
                         cache);
}

std::vector<std::pair<MatMulParams, OptionFlags>> getTriangularSolveMatMulPrePlanParameters(
    const Type&, const Type&, const Shape&, const Shape&, bool, bool, const OptionFlags&) {
  return {};
}

std::vector<std::pair<MatMulParams, OptionFlags>> getTriangularSolveMatMulPrePlanParameters(
    const Type&, const Type&, const Shape&, const Shape&, bool, bool, std::size_t,
    const OptionFlags&) {
  return {};
}

}  // namespace poplin
