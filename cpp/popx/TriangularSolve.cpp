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

Parts triangularSolve(poplar::Graph& graph, const Parts& a, const Parts& b,
                      const TriangularSolveParams& params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  const std::string where = "popx::triangularSolve";
  batch::check(where, a, 2, true);
  batch::check(where, b, 2);
  const auto& shape = b[0].shape();
  const std::uint64_t n = a[0].shape().back();
  if (a.size() != b.size() || batch::leading(a, 2) != batch::leading(b, 2) ||
      shape[shape.size() - (params.left_side ? 2 : 1)] != n) {
    refuse(where, "a triangle and a right side of fitting shapes and kinds",
           a[0].shapeToString() + " and " + b[0].shapeToString());
  }
  native::Attributes attributes;
  attributes.set(
      "flags", native::Attributes::Integers{params.left_side ? 'L' : 'R', params.lower ? 'L' : 'U',
                                            params.transpose, params.unit_diagonal ? 'U' : 'N'});
  const std::uint64_t items = batch::product(batch::leading(b, 2));
  const std::uint64_t rows = shape[shape.size() - 2];
  const double elements = static_cast<double>(rows * shape.back());
  const double size = static_cast<double>(n);
  return batch::emit(graph, "popx.triangularSolve", {{a, 2}, {b, 2}}, {{shape, 2, b.size() == 2}},
                     std::move(attributes),
                     batch::cost(graph, items, rows, shape.back(), size,
                                 size * elements + size * size / 2, b.size() == 2),
                     prog, {debugContext, "triangularSolve"})[0];
}

std::vector<Parts> tridiagonalSolve(poplar::Graph& graph, const Parts& lower, const Parts& diagonal,
                                    const Parts& upper, const Parts& b, bool perturb,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  const std::string where = "popx::tridiagonalSolve";
  batch::check(where, b, 2);
  std::vector<std::size_t> line(b[0].shape().begin(), b[0].shape().end() - 1);
  for (const Parts* part : {&lower, &diagonal, &upper}) {
    if (part->size() != b.size() || (*part)[0].shape() != line) {
      refuse(where, "three diagonals as long as the right side",
             (*part)[0].shapeToString() + " and " + b[0].shapeToString());
    }
  }
  if (perturb && b.size() == 2) refuse(where, "real numbers to perturb pivots", "complex ones");
  native::Attributes attributes;
  attributes.set("perturb", std::int64_t{perturb});
  const auto batch_shape = batch::leading(b, 2);
  const std::uint64_t n = line.back();
  const std::uint64_t columns = b[0].shape().back();
  return batch::emit(
      graph, "popx.tridiagonalSolve", {{lower, 1}, {diagonal, 1}, {upper, 1}, {b, 2}},
      {{b[0].shape(), 2, b.size() == 2}, {batch_shape, 0, false, poplar::INT}},
      std::move(attributes),
      // Columns of B are independent; along n there is nothing to share.
      batch::cost(graph, batch::product(batch_shape) * std::max<std::uint64_t>(columns, 1), n, 1, 1,
                  8 * static_cast<double>(n), b.size() == 2),
      prog, {debugContext, "tridiagonalSolve"});
}

}  // namespace popx
