#include "popx/TriangularSolve.hpp"

#include "popx/MatrixBatch.hpp"

namespace popx {

Parts triangularSolve(Graph& graph, const Parts& a, const Parts& b,
                      const TriangularSolveParams& params, Sequence& prog,
                      const DebugContext& debugContext) {
  const std::string where = "popx::triangularSolve";
  const auto right = batch::rightSideOf(where, a, b, params.left_side);
  native::Attributes attributes;
  attributes.set(
      "flags", native::Attributes::Integers{params.left_side ? 'L' : 'R', params.lower ? 'L' : 'U',
                                            params.transpose, params.unit_diagonal ? 'U' : 'N'});
  const double elements = static_cast<double>(right.m * right.n);
  const double size = static_cast<double>(a[0].shape().back());
  return batch::emit(graph, "popx.triangularSolve", {{a, 2}, {b, 2}},
                     {{b[0].shape(), 2, right.complex}}, std::move(attributes),
                     batch::blockedCost(graph, right, {size, params.block_size, true},
                                        size * elements + size * size / 2),
                     prog, {debugContext, "triangularSolve"})[0];
}

std::vector<Parts> tridiagonalSolve(Graph& graph, const Parts& lower, const Parts& diagonal,
                                    const Parts& upper, const Parts& b, bool perturb,
                                    Sequence& prog, const DebugContext& debugContext) {
  const std::string where = "popx::tridiagonalSolve";
  const auto right = batch::rightSideOf(where, {lower, diagonal, upper}, b);
  native::Attributes attributes;
  attributes.set("perturb", std::int64_t{perturb});
  return batch::emit(
      graph, "popx.tridiagonalSolve", {{lower, 1}, {diagonal, 1}, {upper, 1}, {b, 2}},
      {{b[0].shape(), 2, right.complex}, batch::status(right)}, std::move(attributes),
      // Columns of B are independent; work along n cannot be shared.
      batch::cost(graph, right.items * std::max<std::uint64_t>(right.n, 1), right.m, 1, 1,
                  8 * static_cast<double>(right.m), {right.type, right.complex}),
      prog, {debugContext, "tridiagonalSolve"});
}

}  // namespace popx
