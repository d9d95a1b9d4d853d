#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <random>

#include "Check.hpp"
#include "popops/OnDevice.hpp"
#include "popx/Cholesky.hpp"
#include "popx/Eigen.hpp"
#include "popx/Lu.hpp"
#include "popx/Qr.hpp"
#include "popx/Svd.hpp"
#include "popx/TriangularSolve.hpp"

/// Factorisations are checked by their definition: the product of the factors, and orthogonality.

using Complex = std::complex<double>;
using popx::Parts;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<Complex> values = {};

  Matrix(std::size_t m, std::size_t n) : rows(m), columns(n), values(m * n) {}
  Complex& operator()(std::size_t r, std::size_t c) { return values[r * columns + c]; }
  const Complex& operator()(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

Matrix adjoint(const Matrix& a) {
  Matrix b(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) b(j, i) = std::conj(a(i, j));
  return b;
}

Matrix identity(std::size_t n) {
  Matrix eye(n, n);
  for (std::size_t i = 0; i < n; ++i) eye(i, i) = 1;
  return eye;
}

Matrix diagonal(const Matrix& values) {
  Matrix d(values.columns, values.columns);
  for (std::size_t i = 0; i < values.columns; ++i) d(i, i) = values(0, i);
  return d;
}

void checkEqual(const Matrix& a, const Matrix& b, double tolerance = 2e-5) {
  CHECK_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    CHECK_NEAR(a.values[i].real(), b.values[i].real(), tolerance);
    CHECK_NEAR(a.values[i].imag(), b.values[i].imag(), tolerance);
  }
}

Matrix random(std::size_t m, std::size_t n, bool complex, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Matrix a(m, n);
  for (auto& x : a.values) x = {normal(engine), complex ? normal(engine) : 0.0f};
  return a;
}

/// A program that factorises a batch of matrices.
struct Batch {
  OnDevice d;
  bool complex;
  std::size_t items;

  explicit Batch(bool is_complex, std::size_t count = 3) : complex(is_complex), items(count) {}

  Parts input(const std::vector<Matrix>& batch) {
    std::vector<float> re, im;
    for (const auto& a : batch) {
      for (const auto& x : a.values) {
        re.push_back(static_cast<float>(x.real()));
        im.push_back(static_cast<float>(x.imag()));
      }
    }
    const std::vector<std::size_t> shape = {batch.size(), batch[0].rows, batch[0].columns};
    Parts parts = {d.input(poplar::FLOAT, shape, re)};
    if (complex) parts.push_back(d.input(poplar::FLOAT, shape, im));
    return parts;
  }

  /// The matrices of several results, by result and item; vectors are one row, integers are reals.
  std::vector<std::vector<Matrix>> read(const std::vector<Parts>& results) {
    std::vector<poplar::Tensor> flat;
    for (const auto& parts : results)
      for (const auto& part : parts) flat.push_back(part.flatten().reinterpret(poplar::FLOAT));
    const auto values = d.read<float>(poplar::concat(flat));
    std::size_t at = 0;
    std::vector<std::vector<Matrix>> matrices;
    for (const auto& parts : results) {
      auto shape = parts[0].shape();
      shape.erase(shape.begin());
      while (shape.size() < 2) shape.insert(shape.begin(), 1);
      std::vector<Matrix> batch(items, Matrix(shape[0], shape[1]));
      for (std::size_t part = 0; part < parts.size(); ++part) {
        for (auto& a : batch) {
          for (auto& x : a.values) {
            const bool integer = parts[0].elementType() == poplar::INT;
            const double v = integer ? std::bit_cast<std::int32_t>(values[at]) : values[at];
            x += part == 0 ? Complex(v, 0) : Complex(0, v);
            ++at;
          }
        }
      }
      matrices.push_back(std::move(batch));
    }
    return matrices;
  }
};

std::vector<Matrix> randoms(const Batch& batch, std::size_t m, std::size_t n) {
  std::vector<Matrix> all;
  for (std::size_t i = 0; i < batch.items; ++i) {
    all.push_back(random(m, n, batch.complex, static_cast<unsigned>(10 * i + m)));
  }
  return all;
}

std::vector<Matrix> hermitians(const Batch& batch, std::size_t n) {
  auto all = randoms(batch, n, n);
  for (auto& a : all) {
    const Matrix b = adjoint(a);
    for (std::size_t i = 0; i < a.values.size(); ++i)
      a.values[i] = (a.values[i] + b.values[i]) / 2.;
  }
  return all;
}

Matrix triangle(const Matrix& a, bool lower, bool unit = false) {
  Matrix t = a;
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) {
      if (lower ? j > i : j < i) t(i, j) = 0;
      if (unit && i == j) t(i, j) = 1;
    }
  }
  return t;
}

void forEachKind(void (*body)(bool complex)) {
  body(false);
  body(true);
}

}  // namespace

TEST(cholesky_of_either_triangle) {
  forEachKind([](bool complex) {
    for (const bool lower : {true, false}) {
      Batch batch(complex);
      auto a = randoms(batch, 7, 7);
      for (auto& x : a) x = x * adjoint(x);
      // The other triangle is not read.
      auto garbled = a;
      for (auto& x : garbled) lower ? x(0, 1) = kNan : x(1, 0) = kNan;
      const auto factor =
          batch.read({popx::cholesky(batch.d.graph, batch.input(garbled), lower, batch.d.prog)})[0];
      for (std::size_t i = 0; i < batch.items; ++i) {
        const Matrix& l = factor[i];
        checkEqual(lower ? l * adjoint(l) : adjoint(l) * l, a[i], 1e-4);
        checkEqual(l, triangle(l, lower), 0);
      }
    }
  });
}

TEST(cholesky_of_what_is_not_positive_is_nan_in_that_item_alone) {
  Batch batch(false);
  auto a = randoms(batch, 4, 4);
  for (auto& x : a) x = x * adjoint(x);
  a[1](2, 2) = -1;
  a[2](3, 3) = kNan;
  const auto factor =
      batch.read({popx::cholesky(batch.d.graph, batch.input(a), true, batch.d.prog)})[0];
  for (const auto& x : factor[0].values) CHECK(std::isfinite(x.real()));
  for (const auto& x : factor[1].values) CHECK(std::isnan(x.real()));
  CHECK(std::isnan(factor[2](3, 3).real()));
}

TEST(triangular_solve_all_ways) {
  forEachKind([](bool complex) {
    for (int ways = 0; ways < 24; ++ways) {
      const bool left = ways & 1, lower = ways & 2, unit = ways & 4;
      const char op = "NTC"[ways / 8];
      Batch batch(complex);
      auto a = randoms(batch, 5, 5);
      for (auto& x : a)
        for (std::size_t i = 0; i < 5; ++i) x(i, i) += 5;
      const auto b = left ? randoms(batch, 5, 3) : randoms(batch, 3, 5);
      const auto x =
          batch.read({popx::triangularSolve(batch.d.graph, batch.input(a), batch.input(b),
                                            {left, lower, unit, op}, batch.d.prog)})[0];
      for (std::size_t i = 0; i < batch.items; ++i) {
        Matrix t = triangle(a[i], lower, unit);
        if (op != 'N') t = adjoint(t);
        if (op == 'T')
          for (auto& v : t.values) v = std::conj(v);
        checkEqual(left ? t * x[i] : x[i] * t, b[i], 2e-3);
      }
    }
  });
}

TEST(tridiagonal_solve) {
  forEachKind([](bool complex) {
    for (const std::size_t n : {1, 2, 9}) {
      Batch batch(complex, 1);
      const auto lines = randoms(batch, 3, n);
      const auto b = randoms(batch, n, 2);
      Parts all = batch.input(lines);
      std::vector<Parts> diagonals(3);
      for (const auto& part : all)
        for (std::size_t i = 0; i < 3; ++i)
          diagonals[i].push_back(part.slice(i, i + 1, 1).squeeze({1}));
      const auto x =
          batch.read(popx::tridiagonalSolve(batch.d.graph, diagonals[0], diagonals[1], diagonals[2],
                                            batch.input(b), false, batch.d.prog));
      Matrix a(n, n);
      for (std::size_t i = 0; i < n; ++i) {
        if (i > 0) a(i, i - 1) = lines[0](0, i);
        a(i, i) = lines[0](1, i);
        if (i + 1 < n) a(i, i + 1) = lines[0](2, i);
      }
      checkEqual(a * x[0][0], b[0], 2e-4);
      CHECK_EQ(x[1][0](0, 0).real(), 0.0);
    }
  });
}

TEST(lu_of_any_shape) {
  forEachKind([](bool complex) {
    for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{6, 6}, {7, 4}, {4, 7}}) {
      Batch batch(complex);
      const auto a = randoms(batch, m, n);
      auto results = popx::lu(batch.d.graph, batch.input(a), batch.d.prog);
      const auto got = batch.read(results);
      const std::size_t k = std::min(m, n);
      for (std::size_t i = 0; i < batch.items; ++i) {
        Matrix l(m, k), u(k, n), swapped = a[i];
        for (std::size_t r = 0; r < m; ++r)
          for (std::size_t c = 0; c < n; ++c) (r > c ? l(r, c) : u(r, c)) = got[0][i](r, c);
        for (std::size_t r = 0; r < k; ++r) {
          l(r, r) = 1;
          const auto other = static_cast<std::size_t>(got[1][i](0, r).real()) - 1;
          for (std::size_t c = 0; c < n; ++c) std::swap(swapped(r, c), swapped(other, c));
        }
        checkEqual(l * u, swapped);
        CHECK_EQ(got[2][i](0, 0).real(), 0.0);
      }
    }
  });
}

TEST(permutation_of_pivots_is_their_swaps_in_order) {
  OnDevice d;
  const auto pivots = d.input<std::int32_t>(poplar::INT, {2, 3}, {2, 1, 4, 0, 1, 2});
  const auto order = popx::permutationOfPivots(d.graph, pivots, 5, d.prog);
  const auto got = d.read<std::int32_t>(order);
  const std::vector<std::int32_t> wanted = {2, 1, 4, 3, 0, 0, 1, 2, 3, 4};
  CHECK(got == wanted);
}

TEST(qr_and_its_reflectors) {
  forEachKind([](bool complex) {
    for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{5, 5}, {7, 4}}) {
      Batch batch(complex);
      const auto a = randoms(batch, m, n);
      auto& graph = batch.d.graph;
      const auto factors = popx::qr(graph, batch.input(a), batch.d.prog);
      const auto q = popx::householderProduct(graph, factors[0], factors[1], batch.d.prog);
      const auto qa = popx::householderMultiply(graph, factors[0], factors[1], batch.input(a), true,
                                                true, batch.d.prog);
      const auto got = batch.read({factors[0], q, qa});
      for (std::size_t i = 0; i < batch.items; ++i) {
        Matrix r(n, n);
        for (std::size_t j = 0; j < n; ++j)
          for (std::size_t k = j; k < n; ++k) r(j, k) = got[0][i](j, k);
        checkEqual(got[1][i] * r, a[i]);
        checkEqual(adjoint(got[1][i]) * got[1][i], identity(n));
        Matrix padded(m, n);
        std::copy(r.values.begin(), r.values.end(), padded.values.begin());
        checkEqual(got[2][i], padded);
      }
    }
  });
}

TEST(qr_with_pivots_orders_columns) {
  forEachKind([](bool complex) {
    Batch batch(complex);
    const auto a = randoms(batch, 6, 4);
    auto& graph = batch.d.graph;
    const auto none = batch.d.input<std::int32_t>(poplar::INT, {3, 4}, std::vector<int>(12));
    const auto factors = popx::qrWithPivots(graph, batch.input(a), none, batch.d.prog);
    const auto q = popx::householderProduct(graph, factors[0], factors[2], batch.d.prog);
    const auto got = batch.read({factors[0], factors[1], q});
    for (std::size_t i = 0; i < batch.items; ++i) {
      Matrix r(4, 4), picked(6, 4);
      for (std::size_t j = 0; j < 4; ++j) {
        for (std::size_t k = j; k < 4; ++k) r(j, k) = got[0][i](j, k);
        if (j > 0) CHECK(std::abs(r(j, j)) <= std::abs(r(j - 1, j - 1)) + 1e-6);
        const auto column = static_cast<std::size_t>(got[1][i](0, j).real()) - 1;
        for (std::size_t k = 0; k < 6; ++k) picked(k, j) = a[i](k, column);
      }
      checkEqual(got[2][i] * r, picked);
    }
  });
}

TEST(eigh_of_either_triangle) {
  forEachKind([](bool complex) {
    for (const bool lower : {true, false}) {
      Batch batch(complex);
      const auto a = hermitians(batch, 9);
      auto garbled = a;
      for (auto& x : garbled) lower ? x(0, 3) = kNan : x(3, 0) = kNan;
      const auto got =
          batch.read(popx::eigh(batch.d.graph, batch.input(garbled), lower, batch.d.prog));
      for (std::size_t i = 0; i < batch.items; ++i) {
        const Matrix& v = got[0][i];
        checkEqual(v * diagonal(got[1][i]) * adjoint(v), a[i]);
        checkEqual(adjoint(v) * v, identity(9));
        for (std::size_t k = 1; k < 9; ++k)
          CHECK(got[1][i](0, k).real() >= got[1][i](0, k - 1).real());
        CHECK_EQ(got[2][i](0, 0).real(), 0.0);
      }
    }
  });
}

TEST(a_nan_gives_a_status_and_no_crash) {
  using Function = std::vector<Parts> (*)(poplar::Graph&, const Parts&, poplar::program::Sequence&);
  const Function functions[] = {
      [](auto& g, const auto& a, auto& p) { return popx::eigh(g, a, true, p); },
      [](auto& g, const auto& a, auto& p) { return popx::eig(g, a, true, true, p); },
      [](auto& g, const auto& a, auto& p) { return popx::schur(g, a, true, p); },
      [](auto& g, const auto& a, auto& p) { return popx::svd(g, a, true, true, true, p); },
      [](auto& g, const auto& a, auto& p) { return popx::svd(g, a, true, false, false, p); }};
  for (const bool complex : {false, true}) {
    for (const auto function : functions) {
      for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
        Batch batch(complex);
        auto a = randoms(batch, 4, 4);
        a[1](2, 1) = bad;
        const auto results = function(batch.d.graph, batch.input(a), batch.d.prog);
        const auto status = batch.read({results.back()})[0];
        for (std::size_t i = 0; i < 3; ++i) CHECK_EQ(status[i](0, 0).real() != 0, i == 1);
      }
    }
  }
}

TEST(tridiagonal_and_hessenberg_keep_eigenvalues_traces) {
  forEachKind([](bool complex) {
    Batch batch(complex);
    const auto a = hermitians(batch, 6);
    auto& graph = batch.d.graph;
    const Parts in = batch.input(a);
    auto results = popx::tridiagonal(graph, in, true, batch.d.prog);
    const auto second = popx::hessenberg(graph, in, batch.d.prog);
    results.insert(results.end(), second.begin(), second.end());
    const auto got = batch.read(results);
    for (std::size_t i = 0; i < batch.items; ++i) {
      double trace = 0, squares = 0, found = 0, found_squares = 0, hessenberg = 0;
      for (const auto& x : a[i].values) squares += std::norm(x);
      for (std::size_t k = 0; k < 6; ++k) {
        trace += a[i](k, k).real();
        found += got[1][i](0, k).real();
        hessenberg += got[5][i](k, k).real();
        found_squares += std::norm(got[1][i](0, k));
        if (k < 5) found_squares += 2 * std::norm(got[2][i](0, k));
      }
      CHECK_NEAR(found, trace, 1e-5);
      CHECK_NEAR(hessenberg, trace, 1e-5);
      CHECK_NEAR(found_squares, squares, 1e-4);
    }
  });
}

TEST(eig_and_schur) {
  forEachKind([](bool complex) {
    Batch batch(complex);
    const auto a = randoms(batch, 7, 7);
    auto& graph = batch.d.graph;
    const Parts in = batch.input(a);
    auto results = popx::eig(graph, in, true, true, batch.d.prog);
    const auto second = popx::schur(graph, in, true, batch.d.prog);
    results.insert(results.end(), second.begin(), second.end());
    const auto got = batch.read(results);
    for (std::size_t i = 0; i < batch.items; ++i) {
      const Matrix w = diagonal(got[0][i]);
      checkEqual(a[i] * got[2][i], got[2][i] * w, 1e-4);
      checkEqual(adjoint(got[1][i]) * a[i], w * adjoint(got[1][i]), 1e-4);
      const Matrix& q = got[5][i];
      checkEqual(q * got[4][i] * adjoint(q), a[i], 1e-4);
      checkEqual(adjoint(q) * q, identity(7));
    }
  });
}

TEST(svd_thin_full_and_values_alone) {
  forEachKind([](bool complex) {
    for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{6, 4}, {4, 6}, {5, 5}}) {
      for (const bool full : {false, true}) {
        for (const bool divide : {false, true}) {
          Batch batch(complex);
          const auto a = randoms(batch, m, n);
          const auto got = batch.read(
              popx::svd(batch.d.graph, batch.input(a), true, full, divide, batch.d.prog));
          const std::size_t k = std::min(m, n);
          for (std::size_t i = 0; i < batch.items; ++i) {
            const Matrix &u = got[1][i], &vt = got[2][i];
            Matrix s(u.columns, vt.rows);
            for (std::size_t j = 0; j < k; ++j) s(j, j) = got[0][i](0, j);
            checkEqual(u * s * vt, a[i]);
            checkEqual(adjoint(u) * u, identity(u.columns));
            checkEqual(vt * adjoint(vt), identity(vt.rows));
          }
        }
      }
    }
  });
}

TEST(what_is_no_matrix_is_refused) {
  OnDevice d;
  const auto x = d.iota({4, 6});
  const auto half = d.graph.addVariable(poplar::HALF, {4, 4}, "half");
  CHECK_THROWS(popx::cholesky(d.graph, {x}, true, d.prog), "square matrices; got {4,6}");
  CHECK_THROWS(popx::cholesky(d.graph, {half}, true, d.prog), "type float; got half");
  CHECK_THROWS(popx::cholesky(d.graph, {}, true, d.prog), "one real tensor");
  CHECK_THROWS(popx::qr(d.graph, {x.flatten()}, d.prog), "at least 2 dimensions");
  const auto square = d.iota({4, 4});
  CHECK_THROWS(popx::triangularSolve(d.graph, {square}, {d.iota({5, 2})}, {}, d.prog), "fitting");
  CHECK_THROWS(popx::householderProduct(d.graph, {x}, {d.iota({4})}, d.prog),
               "at least as many rows");
}
