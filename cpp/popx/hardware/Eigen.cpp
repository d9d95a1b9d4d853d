#include "popx/Eigen.hpp"

#include "popx/hardware/ItemStep.hpp"

namespace popx {

namespace {

using poplar::FLOAT;
using poplar::Tensor;

/// Square matrices, and the step that works on them.
struct Square {
  Square(Graph& graph, const std::string& name, const Parts& a, Sequence& prog,
         const DebugContext& debugContext)
      : given("popx::" + name, a, true),
        n(given.n),
        floats(given.complex ? 2 : 1),
        between(n == 0 ? 0 : n - 1),
        cube(static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n)),
        step(graph, "popx::" + name, given.items, prog, {debugContext, name}),
        matrix(step.copy(a, 2)) {}

  /// A result with the batch dimensions in front.
  Parts result(const Tensor& values, const std::vector<std::size_t>& item, bool complex) const {
    return partsOf(values, batch::shapeOf(given.leading, item), complex);
  }

  batch::Matrices given;
  std::size_t n, floats, between;
  double cube;
  ItemStep step;
  Tensor matrix;
};

/// A = Q T Q^H; T replaces A.
struct SchurForm {
  Tensor q, values, status;

  SchurForm(Square& a, bool vectors)
      : q(a.step.zeros(FLOAT, a.n * a.n * a.floats)),
        values(a.step.room(FLOAT, 2 * a.n)),
        status(a.step.status()) {
    a.step.run("Eigen", instanceFor("Schur", a.given.complex),
               {{"a", a.matrix},
                {"q", q},
                {"tau", a.step.room(FLOAT, a.n * a.floats)},
                {"values", values},
                {"status", status}},
               {{"n", a.n}, {"vectors", vectors}}, (vectors ? 25 : 10) * a.cube);
  }
};

}  // namespace

std::vector<Parts> eigh(Graph& graph, const Parts& a, bool lower, Sequence& prog,
                        const DebugContext& debugContext) {
  Square square(graph, "eigh", a, prog, debugContext);
  const auto vectors = square.step.room(FLOAT, square.n * square.n * square.floats);
  const auto values = square.step.room(FLOAT, square.n);
  const auto status = square.step.status();
  // Our estimate: seven sweeps of n^2 / 2 rotations of 18 n flops.
  square.step.run(
      "Hermitian", instanceFor("Eigh", square.given.complex),
      {{"a", square.matrix}, {"vectors", vectors}, {"values", values}, {"status", status}},
      {{"n", square.n}, {"lower", lower}}, 63 * square.cube);
  return {partsOf(vectors, a[0].shape(), square.given.complex),
          square.result(values, {square.n}, false), square.result(status, {}, false)};
}

std::vector<Parts> tridiagonal(Graph& graph, const Parts& a, bool lower, Sequence& prog,
                               const DebugContext& debugContext) {
  Square square(graph, "tridiagonal", a, prog, debugContext);
  const auto diagonal = square.step.room(FLOAT, square.n);
  const auto between = square.step.room(FLOAT, square.between);
  const auto tau = square.step.room(FLOAT, square.between * square.floats);
  const auto status = square.step.status();
  square.step.run("Hermitian", instanceFor("Tridiagonal", square.given.complex),
                  {{"a", square.matrix},
                   {"diagonal", diagonal},
                   {"between", between},
                   {"tau", tau},
                   {"product", square.step.room(FLOAT, square.n * square.floats)}},
                  {{"n", square.n}, {"lower", lower}}, 4.0 / 3 * square.cube);
  return {
      partsOf(square.matrix, a[0].shape(), square.given.complex),
      square.result(diagonal, {square.n}, false), square.result(between, {square.between}, false),
      square.result(tau, {square.between}, square.given.complex), square.result(status, {}, false)};
}

std::vector<Parts> eig(Graph& graph, const Parts& a, bool left, bool right, Sequence& prog,
                       const DebugContext& debugContext) {
  Square square(graph, "eig", a, prog, debugContext);
  ItemStep& step = square.step;
  const SchurForm form(square, left || right);
  Tensor t = square.matrix, q = form.q;
  const std::size_t floats = 2 * square.n * square.n;
  if ((left || right) && !square.given.complex) {
    t = step.room(FLOAT, floats);
    q = step.room(FLOAT, floats);
    step.run("Eigen", "ComplexSchur",
             {{"a", square.matrix}, {"q", form.q}, {"values", form.values}, {"t", t}, {"z", q}},
             {{"n", square.n}}, 24.0 * static_cast<double>(floats));
  }
  const auto vectors = [&](bool wanted, bool is_left) {
    if (!wanted) return square.result(step.zeros(FLOAT, floats), {square.n, square.n}, true);
    const auto result = step.room(FLOAT, floats);
    step.run(
        "Eigen", "Eigenvectors",
        {{"t", t}, {"q", q}, {"vectors", result}, {"solution", step.room(FLOAT, 2 * square.n)}},
        {{"n", square.n}, {"left", is_left}, {"pairs", !square.given.complex}}, 8 * square.cube);
    return square.result(result, {square.n, square.n}, true);
  };
  const Parts lefts = vectors(left, true);
  const Parts rights = vectors(right, false);
  return {square.result(form.values, {square.n}, true), lefts, rights,
          square.result(form.status, {}, false)};
}

std::vector<Parts> schur(Graph& graph, const Parts& a, bool vectors, Sequence& prog,
                         const DebugContext& debugContext) {
  Square square(graph, "schur", a, prog, debugContext);
  const SchurForm form(square, vectors);
  return {partsOf(square.matrix, a[0].shape(), square.given.complex),
          partsOf(form.q, a[0].shape(), square.given.complex),
          square.result(form.values, {square.n}, true), square.result(form.status, {}, false)};
}

std::vector<Parts> hessenberg(Graph& graph, const Parts& a, Sequence& prog,
                              const DebugContext& debugContext) {
  Square square(graph, "hessenberg", a, prog, debugContext);
  const auto tau = square.step.room(FLOAT, square.between * square.floats);
  const auto status = square.step.status();
  square.step.run("Eigen", instanceFor("Hessenberg", square.given.complex),
                  {{"a", square.matrix}, {"tau", tau}}, {{"n", square.n}}, 10.0 / 3 * square.cube);
  return {partsOf(square.matrix, a[0].shape(), square.given.complex),
          square.result(tau, {square.between}, square.given.complex),
          square.result(status, {}, false)};
}

}  // namespace popx
