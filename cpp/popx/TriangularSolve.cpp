#include "popx/TriangularSolve.hpp"

#include "poplar/exceptions.hpp"

namespace popx {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& needs,
                         const std::string& got) {
  throw poplar::poplar_error("[" + where + "] needs " + needs + "; got " + got +
                             ". Make their shapes agree.");
}

}  // namespace

Parts triangularSolve(Graph& graph, const Parts& a, const Parts& b,
                      const TriangularSolveParams& params, Sequence& prog,
                      const DebugContext& debugContext) {
  const std::string where = "popx::triangularSolve";
  const batch::Matrices triangle(where, a, true);
  const batch::Matrices right(where, b);
  if (triangle.complex != right.complex || triangle.leading != right.leading ||
      (params.left_side ? right.m : right.n) != triangle.n) {
    refuse(where, "a triangle and a right side of fitting shapes and kinds",
           a[0].shapeToString() + " and " + b[0].shapeToString());
  }
  native::Attributes attributes;
  attributes.set(
      "flags", native::Attributes::Integers{params.left_side ? 'L' : 'R', params.lower ? 'L' : 'U',
                                            params.transpose, params.unit_diagonal ? 'U' : 'N'});
  const double elements = static_cast<double>(right.m * right.n);
  const double size = static_cast<double>(triangle.n);
  return batch::emit(graph, "popx.triangularSolve", {{a, 2}, {b, 2}},
                     {{b[0].shape(), 2, right.complex}}, std::move(attributes),
                     right.cost(graph, size, size * elements + size * size / 2), prog,
                     {debugContext, "triangularSolve"})[0];
}

std::vector<Parts> tridiagonalSolve(Graph& graph, const Parts& lower, const Parts& diagonal,
                                    const Parts& upper, const Parts& b, bool perturb,
                                    Sequence& prog, const DebugContext& debugContext) {
  const std::string where = "popx::tridiagonalSolve";
  const batch::Matrices right(where, b);
  const std::vector<std::size_t> line(b[0].shape().begin(), b[0].shape().end() - 1);
  for (const Parts* part : {&lower, &diagonal, &upper}) {
    if (part->size() != b.size() || (*part)[0].shape() != line) {
      refuse(where, "three diagonals as long as the right side",
             (*part)[0].shapeToString() + " and " + b[0].shapeToString());
    }
  }
  if (perturb && right.complex) refuse(where, "real numbers to perturb pivots", "complex ones");
  native::Attributes attributes;
  attributes.set("perturb", std::int64_t{perturb});
  return batch::emit(graph, "popx.tridiagonalSolve",
                     {{lower, 1}, {diagonal, 1}, {upper, 1}, {b, 2}},
                     {{b[0].shape(), 2, right.complex}, right.status()}, std::move(attributes),
                     // Columns of B are independent; along n there is nothing to share.
                     batch::cost(graph, right.items * std::max<std::uint64_t>(right.n, 1), right.m,
                                 1, 1, 8 * static_cast<double>(right.m), right.complex),
                     prog, {debugContext, "tridiagonalSolve"});
}

}  // namespace popx
