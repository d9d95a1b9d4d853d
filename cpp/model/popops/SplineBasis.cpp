#include "popops/SplineBasis.hpp"

#include <string>
#include <vector>

#include "popops/ElementWise.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using poplar::Tensor;

[[noreturn]] void refuse(const std::string& needs, const std::string& got) {
  throw poputil::poplibs_error("[popops::splineBasis] needs " + needs + "; got " + got + ".");
}

std::size_t splines(unsigned degree, std::size_t dims) {
  std::size_t n = 1;
  for (std::size_t d = 0; d < dims; ++d) n *= degree + 1;
  return n;
}

void check(const Tensor& pseudo, const Tensor& kernel_size, const Tensor& is_open,
           const Tensor& basis, const Tensor& index, unsigned degree) {
  if (degree < 1 || degree > 3) refuse("a degree of 1, 2 or 3", std::to_string(degree));
  const auto type = pseudo.elementType();
  if (pseudo.rank() != 2 || (type != poplar::FLOAT && type != poplar::HALF))
    refuse("pseudo [edges, dims] of FLOAT or HALF", pseudo.shapeToString() + " " + type.toString());
  const std::size_t dims = pseudo.dim(1);
  const auto has = [&](const Tensor& t, std::vector<std::size_t> shape, poplar::Type of,
                       const char* name) {
    if (t.shape() != shape || t.elementType() != of) {
      refuse(std::string(name) + " of " + of.toString() + " that fits pseudo " +
                 pseudo.shapeToString(),
             t.shapeToString() + " " + t.elementType().toString());
    }
  };
  has(kernel_size, {dims}, poplar::INT, "kernelSize");
  has(is_open, {dims}, poplar::UNSIGNED_CHAR, "isOpenSpline");
  has(basis, {pseudo.dim(0), splines(degree, dims)}, type, "basis");
  has(index, basis.shape(), poplar::INT, "weightIndex");
}

/// The k-th of the degree + 1 nonzero polynomials, at v in [0, 1).
expr::Any polynomial(unsigned degree, unsigned k, const expr::Any& v) {
  const auto c = [](float x) { return expr::Const(x); };
  const expr::Any square = v * v, cube = v * v * v;
  if (degree == 1) return k == 0 ? expr::Any(c(1) - v) : v;
  if (degree == 2) {
    if (k == 0) return c(0.5f) * square - v + c(0.5f);
    return k == 1 ? expr::Any(v - square + c(0.5f)) : expr::Any(c(0.5f) * square);
  }
  const expr::Any rest = c(1) - v;
  if (k == 0) return rest * rest * rest / c(6);
  if (k == 1) return (c(3) * cube - c(6) * square + c(4)) / c(6);
  if (k == 2) return (c(3) * v + c(3) * square - c(3) * cube + c(1)) / c(6);
  return cube / c(6);
}

}  // namespace

void splineBasis(poplar::Graph& graph, const Tensor& pseudo, const Tensor& kernelSize,
                 const Tensor& isOpenSpline, const Tensor& basis, const Tensor& weightIndex,
                 unsigned degree, poplar::program::Sequence& prog,
                 const poplar::DebugContext& debugContext) {
  check(pseudo, kernelSize, isOpenSpline, basis, weightIndex, degree);
  const poplar::DebugContext context{debugContext, "splineBasis"};
  // Coordinates in units of grid cells, and their cells: [edges, dims]. In float, since rounding to
  // half would move one just below an integer to the next cell.
  const expr::Cast at(expr::_1, poplar::FLOAT);
  const expr::Cast size(expr::_2, poplar::FLOAT);
  const expr::Cast open(expr::_3, poplar::FLOAT);
  const auto place = map(graph, at * (size - open * expr::Const(static_cast<float>(degree))),
                         {pseudo, kernelSize, isOpenSpline}, prog, context);
  const auto cell =
      map(graph, expr::Cast(expr::Floor(expr::_1), poplar::INT), {place}, prog, context);
  const auto inside = map(graph, expr::_1 - expr::Floor(expr::_1), {place}, prog, context);
  for (std::size_t s = 0; s < basis.dim(1); ++s) {
    // basis = product over dims; index = sum of cells, the first dimension the fastest.
    std::vector<Tensor> operands;
    std::vector<expr::Any> factors, cells;
    unsigned k = static_cast<unsigned>(s);
    for (std::size_t d = 0; d < pseudo.dim(1); ++d, k /= degree + 1) {
      operands.push_back(inside.slice(d, d + 1, 1).flatten());
      factors.push_back(polynomial(degree, k % (degree + 1),
                                   expr::Any(expr::PlaceHolder(static_cast<unsigned>(d + 1)))));
    }
    expr::Any product = factors[0];
    for (std::size_t d = 1; d < factors.size(); ++d) product = product * factors[d];
    mapWithOutput(graph, expr::Cast(product, basis.elementType()), operands,
                  basis.slice(s, s + 1, 1).flatten(), prog, context);

    operands.clear();
    k = static_cast<unsigned>(s);
    for (std::size_t d = 0; d < pseudo.dim(1); ++d, k /= degree + 1) {
      operands.push_back(cell.slice(d, d + 1, 1).flatten());
      operands.push_back(kernelSize.slice(d, d + 1));
      const expr::PlaceHolder at(static_cast<unsigned>(2 * d + 1));
      const expr::PlaceHolder of(static_cast<unsigned>(2 * d + 2));
      expr::Any number = (at + expr::Const(static_cast<int>(k % (degree + 1)))) % of;
      for (std::size_t before = 0; before < d; ++before)
        number = number * expr::PlaceHolder(static_cast<unsigned>(2 * before + 2));
      cells.push_back(number);
    }
    expr::Any number = cells[0];
    for (std::size_t d = 1; d < cells.size(); ++d) number = number + cells[d];
    mapWithOutput(graph, number, operands, weightIndex.slice(s, s + 1, 1).flatten(), prog, context);
  }
}

}  // namespace popops
