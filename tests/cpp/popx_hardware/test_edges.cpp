#include <cmath>
#include <complex>
#include <random>

#include "Check.hpp"
#include "poplar/Engine.hpp"
#include "poplar/IPUModel.hpp"
#include "popx/Cholesky.hpp"
#include "popx/Eigen.hpp"
#include "popx/Expr.hpp"
#include "popx/Map.hpp"
#include "popx/Reduce.hpp"
#include "popx/ReduceWindow.hpp"
#include "popx/Scatter.hpp"
#include "popx/Sort.hpp"
#include "popx/Svd.hpp"

// Matrices that are hard for the codelets' iterations, matrices too large for a tile, bad input.

using popx::Parts;
using Number = std::complex<double>;

namespace {

/// Square and row-major.
struct Matrix {
  std::size_t n;
  std::vector<Number> values;

  explicit Matrix(std::size_t size) : n(size), values(size * size) {}
  Number& operator()(std::size_t i, std::size_t j) { return values[i * n + j]; }
  const Number& operator()(std::size_t i, std::size_t j) const { return values[i * n + j]; }

  Matrix adjoint() const {
    Matrix t(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) t(j, i) = std::conj((*this)(i, j));
    return t;
  }
  double norm() const {
    double sum = 0;
    for (const auto& x : values) sum += std::norm(x);
    return std::sqrt(sum);
  }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.n);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t k = 0; k < a.n; ++k)
      for (std::size_t j = 0; j < a.n; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

Matrix operator-(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] -= b.values[i];
  return a;
}

Matrix identity(std::size_t n) {
  Matrix eye(n);
  for (std::size_t i = 0; i < n; ++i) eye(i, i) = 1;
  return eye;
}

std::vector<Matrix> hardOnes(std::size_t n) {
  std::mt19937 engine(3);
  std::normal_distribution<double> normal;
  Matrix random(n), ones(n), cycle(n), jordan(n), graded(n), large(n), small(n), doubled(n);
  for (std::size_t i = 0; i < n; ++i) {
    cycle(i, (i + 1) % n) = 1;  // eigenvalues on a circle: plain shifts never converge
    jordan(i, i) = 2;
    if (i + 1 < n) jordan(i, i + 1) = 1;
    for (std::size_t j = 0; j < n; ++j) {
      random(i, j) = normal(engine);
      ones(i, j) = 1;  // rank 1
      graded(i, j) = normal(engine) * std::pow(10.0, -static_cast<double>(i + j) / 4);
      large(i, j) = 1e25 * normal(engine);
      small(i, j) = 1e-25 * normal(engine);
      doubled(i, j) = random(i, j / 2 * 2);  // equal columns
    }
  }
  return {random, ones, cycle, jordan, graded, large, small, doubled, Matrix(n), identity(n)};
}

/// All matrices in one program, and results read back item by item.
struct Batch {
  poplar::Graph graph{poplar::IPUModel().createDevice()};
  poplar::program::Sequence prog;
  std::vector<Matrix> matrices;
  bool complex;
  Parts parts;

  Batch(std::vector<Matrix> given, bool is_complex)
      : matrices(std::move(given)), complex(is_complex) {
    const std::size_t n = matrices[0].n;
    for (auto& a : matrices) {
      if (complex)  // a unitary factor: as hard, but not real
        for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] *= std::polar(1.0, 0.7);
      for (auto& x : a.values)
        x = {static_cast<float>(x.real()), static_cast<float>(complex ? x.imag() : 0)};
    }
    for (int part = 0; part < (complex ? 2 : 1); ++part) {
      std::vector<float> values;
      for (const auto& a : matrices)
        for (const auto& x : a.values)
          values.push_back(static_cast<float>(part == 0 ? x.real() : x.imag()));
      parts.push_back(graph.addVariable(poplar::FLOAT, {matrices.size(), n, n},
                                        poplar::VariableMappingMethod::LINEAR, "a"));
      graph.setInitialValue<float>(parts.back(), poplar::ArrayRef<float>(values));
    }
  }

  /// For each result, a square matrix for each item; a vector becomes a diagonal.
  std::vector<std::vector<Matrix>> run(const std::vector<Parts>& results) {
    for (std::size_t r = 0; r < results.size(); ++r)
      for (std::size_t p = 0; p < results[r].size(); ++p)
        graph.createHostRead(handle(r, p), results[r][p]);
    poplar::Engine engine(graph, prog);
    engine.load(poplar::Device(graph.getTarget()));
    engine.run();
    std::vector<std::vector<Matrix>> all;
    const std::size_t n = matrices[0].n;
    for (std::size_t r = 0; r < results.size(); ++r) {
      std::vector<Matrix> batch(matrices.size(), Matrix(n));
      const bool line = results[r][0].rank() == 2;
      for (std::size_t p = 0; p < results[r].size(); ++p) {
        std::vector<float> values(results[r][p].numElements());
        engine.readTensor(handle(r, p), values.data(), values.data() + values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t size = line ? n : n * n, at = i % size;
          batch[i / size].values[line ? at * (n + 1) : at] +=
              p == 0 ? Number(values[i], 0) : Number(0, values[i]);
        }
      }
      all.push_back(std::move(batch));
    }
    return all;
  }

  static std::string handle(std::size_t r, std::size_t p) {
    return std::to_string(r) + "." + std::to_string(p);
  }
};

void near(const char* what, std::size_t item, const Matrix& difference, double size) {
  const double error = difference.norm();
  if (!(error <= 1e-5 * size))
    check::fail(__FILE__, __LINE__, what, " ", item, ": ", error, " of ", size);
}

}  // namespace

TEST(schur_forms_and_eigenvalues_of_hard_matrices) {
  for (const bool complex : {false, true}) {
    for (const std::size_t n : {2, 3, 12, 40}) {
      Batch b(hardOnes(n), complex);
      const auto schur = popx::schur(b.graph, b.parts, true, b.prog);
      const auto eig = popx::eig(b.graph, b.parts, false, true, b.prog);
      const auto got = b.run({schur[0], schur[1], eig[0], eig[2]});
      for (std::size_t i = 0; i < b.matrices.size(); ++i) {
        const Matrix &a = b.matrices[i], &t = got[0][i], &q = got[1][i];
        const double root = std::sqrt(static_cast<double>(n));
        near("A - Q T Q^H", i, a - q * t * q.adjoint(), a.norm() + 1e-30);
        near("I - Q^H Q", i, identity(n) - q.adjoint() * q, root);
        near("A V - V W", i, a * got[3][i] - got[3][i] * got[2][i], a.norm() * root + 1e-30);
        for (std::size_t r = 0; r < n; ++r)
          for (std::size_t c = 0; c + (complex ? 0 : 1) < r; ++c) CHECK_EQ(std::abs(t(r, c)), 0.0);
      }
    }
  }
}

TEST(singular_values_and_eigenvectors_of_hard_matrices) {
  for (const bool complex : {false, true}) {
    for (const std::size_t n : {2, 12, 40}) {
      Batch b(hardOnes(n), complex);
      const auto svd = popx::svd(b.graph, b.parts, true, true, true, b.prog);
      // Only one triangle is read, so any matrix will do.
      const auto eigh = popx::eigh(b.graph, b.parts, true, b.prog);
      const auto got = b.run({svd[0], svd[1], svd[2], eigh[0], eigh[1]});
      for (std::size_t i = 0; i < b.matrices.size(); ++i) {
        const Matrix& a = b.matrices[i];
        const double root = std::sqrt(static_cast<double>(n));
        near("A - U S V^H", i, a - got[1][i] * got[0][i] * got[2][i], a.norm() + 1e-30);
        near("I - U^H U", i, identity(n) - got[1][i].adjoint() * got[1][i], root);
        near("I - V^H V", i, identity(n) - got[2][i] * got[2][i].adjoint(), root);
        Matrix h = a;
        for (std::size_t r = 0; r < n; ++r) {
          h(r, r) = a(r, r).real();
          for (std::size_t c = 0; c < r; ++c) h(c, r) = std::conj(a(r, c));
        }
        const Matrix& v = got[3][i];
        near("H - V W V^H", i, h - v * got[4][i] * v.adjoint(), h.norm() + 1e-30);
        near("I - V^H V of eigh", i, identity(n) - v.adjoint() * v, root);
      }
    }
  }
}

TEST(real_matrices_have_pairs_of_eigenvalues) {
  Batch b(hardOnes(12), false);
  const auto eig = popx::eig(b.graph, b.parts, false, true, b.prog);
  const auto got = b.run({eig[0], eig[2]});
  for (std::size_t i = 0; i < b.matrices.size(); ++i) {
    const Matrix &w = got[0][i], &v = got[1][i];
    for (std::size_t k = 0; k < 12; ++k) {
      if (w(k, k).imag() == 0) {
        for (std::size_t r = 0; r < 12; ++r) CHECK_EQ(v(r, k).imag(), 0.0);
      } else if (w(k, k).imag() > 0) {
        CHECK(w(k + 1, k + 1) == std::conj(w(k, k)));
        for (std::size_t r = 0; r < 12; ++r) CHECK(v(r, k + 1) == std::conj(v(r, k)));
      }
    }
  }
}

TEST(a_matrix_larger_than_a_tile_is_refused) {
  poplar::Graph graph(poplar::IPUModel().createDevice());
  poplar::program::Sequence prog;
  const auto a =
      graph.addVariable(poplar::FLOAT, {2, 512, 512}, poplar::VariableMappingMethod::LINEAR, "a");
  CHECK_THROWS(popx::cholesky(graph, {a}, true, prog), "fit the memory of a tile");
}

TEST(what_does_not_fit_together_is_refused) {
  using namespace popx::expr;
  poplar::Graph graph(poplar::IPUModel().createDevice());
  poplar::program::Sequence prog;
  const auto x = graph.addVariable(poplar::FLOAT, {4}, poplar::VariableMappingMethod::LINEAR, "x");
  const std::vector<popx::SortKey> keys(1);
  CHECK_THROWS(popx::sort(graph, {x}, 1, keys, prog), "a dimension below 1");
  CHECK_THROWS(popx::sort(graph, {x, x[0].reshape({1})}, 0, keys, prog), "operands of one shape");
  CHECK_THROWS(popx::reduce(graph, {x}, {x}, {_1 + _2}, {0}, prog), "scalar initial values");
  CHECK_THROWS(popx::reduce(graph, {x}, {x[0]}, {_1 + _2}, {1}, prog), "dimensions below 1");
  CHECK_THROWS(popx::reduceWindow(graph, {x}, {x[0]}, {_1 + _2}, popx::Window::of({0}), prog),
               "sizes, strides and dilations of 1 or more");
  CHECK_THROWS(popx::scatter(graph, {x}, x, {x}, {}, "sub", prog), "got sub");
}

TEST(every_operation_of_popx_has_a_formula) {
  using namespace popx::expr;
  poplar::Graph graph(poplar::IPUModel().createDevice());
  poplar::program::Sequence prog;
  const auto variable = [&](poplar::Type type) {
    return graph.addVariable(type, {4}, poplar::VariableMappingMethod::LINEAR, "x");
  };
  const std::vector<poplar::Tensor> ts = {variable(poplar::FLOAT), variable(poplar::FLOAT),
                                          variable(poplar::UNSIGNED_SHORT)};
  std::vector<Expr> exprs;
#define UNARY(Name, name, traits, api, ...) api
#define POPX(Name) exprs.push_back(Name(#Name == std::string("FromBFloat16") ? _3 : _1));
#include "engine/ops/ElementwiseOps.def"
#define BINARY(Name, name, traits, api, ...) api
#define POPX(Name) exprs.push_back(Name(_1, _2));
#include "engine/ops/ElementwiseOps.def"
  CHECK(exprs.size() >= 16);
  for (const Expr& e : exprs) CHECK_EQ(popx::map(graph, {e}, ts, prog)[0].numElements(), 4u);
}

TEST(expressions_that_do_not_fit_their_tensors_are_refused) {
  using namespace popx::expr;
  poplar::Graph graph(poplar::IPUModel().createDevice());
  poplar::program::Sequence prog;
  const auto x = graph.addVariable(poplar::INT, {4}, poplar::VariableMappingMethod::LINEAR, "x");
  CHECK_THROWS(popx::map(graph, {_1 + _2}, {x}, prog), "a tensor for each placeholder; got 1");
  CHECK_THROWS(popx::map(graph, {_1}, {}, prog), "at least one tensor");
  CHECK_THROWS(popx::map(graph, {ReducePrecision(_1, 5, 2)}, {x}, prog), "a FLOAT or HALF");
  CHECK_THROWS(PlaceHolder(0), "an index from 1");
}
