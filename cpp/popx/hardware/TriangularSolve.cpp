#include "popx/TriangularSolve.hpp"

#include "popx/hardware/ItemStep.hpp"

namespace popx {

Parts triangularSolve(Graph& graph, const Parts& a, const Parts& b,
                      const TriangularSolveParams& params, Sequence& prog,
                      const DebugContext& debugContext) {
  const std::string where = "popx::triangularSolve";
  const auto right = batch::rightSideOf(where, a, b, params.left_side);
  const std::size_t n = a[0].shape().back();
  ItemStep step(graph, where, right.items, prog, {debugContext, "triangularSolve"});
  const auto x = step.copy(b, 2);
  const auto triangle = step.copy(a, 2);
  step.run("Triangular", instanceFor("TriangularSolve", right.complex), {{"b", x}, {"a", triangle}},
           {{"n", n},
            {"rows", right.m},
            {"columns", right.n},
            {"left", params.left_side},
            {"lower", params.lower},
            {"unit", params.unit_diagonal},
            {"transposed", params.transpose != 'N'},
            {"conjugated", params.transpose == 'C'}},
           static_cast<double>(n * right.m * right.n));
  return partsOf(x, b[0].shape(), right.complex);
}

std::vector<Parts> tridiagonalSolve(Graph& graph, const Parts& lower, const Parts& diagonal,
                                    const Parts& upper, const Parts& b, bool perturb,
                                    Sequence& prog, const DebugContext& debugContext) {
  const std::string where = "popx::tridiagonalSolve";
  const auto right = batch::rightSideOf(where, {lower, diagonal, upper}, b);
  ItemStep step(graph, where, right.items, prog, {debugContext, "tridiagonalSolve"});
  const auto x = step.copy(b, 2);
  const auto status = step.status();
  const std::string type =
      instanceFor(perturb ? "PerturbedTridiagonalSolve" : "TridiagonalSolve", right.complex);
  step.run("Triangular", type,
           {{"b", x},
            {"lower", step.copy(lower, 1)},
            {"diagonal", step.copy(diagonal, 1)},
            {"upper", step.copy(upper, 1)},
            {"status", status}},
           {{"n", right.m}, {"columns", right.n}}, static_cast<double>(8 * right.m * right.n));
  return {partsOf(x, b[0].shape(), right.complex), partsOf(status, right.leading, false)};
}

}  // namespace popx
