#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>

#include "Check.hpp"
#include "engine/image/Image.hpp"
#include "popops/OnDevice.hpp"
#include "popx/Fft.hpp"
#include "popx/Type.hpp"

using Complex = std::complex<double>;

namespace {

/// The definition, in long double: sums in double would be less precise than the tested results.
std::vector<Complex> dft(const std::vector<Complex>& x, double sign) {
  using Long = std::complex<long double>;
  const std::size_t n = x.size();
  std::vector<Long> roots;
  for (std::size_t k = 0; k < n; ++k) {
    const long double turn = static_cast<long double>(k) / static_cast<long double>(n);
    roots.push_back(std::polar(1.0L, sign * 2 * std::numbers::pi_v<long double> * turn));
  }
  std::vector<Complex> y;
  for (std::size_t k = 0; k < n; ++k) {
    Long sum;
    for (std::size_t j = 0; j < n; ++j) sum += Long(x[j]) * roots[j * k % n];
    y.emplace_back(sum);
  }
  return y;
}

template <class T>
struct Lines {
  std::size_t rows;
  std::size_t n;
  std::vector<T> re;
  std::vector<T> im;
};

template <class T = float>
Lines<T> randomLines(std::size_t rows, std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(rows * 1000 + n));
  std::normal_distribution<T> normal;
  Lines<T> lines{rows, n, std::vector<T>(rows * n), std::vector<T>(rows * n)};
  for (auto& x : lines.re) x = normal(random);
  for (auto& x : lines.im) x = normal(random);
  return lines;
}

template <class T>
std::vector<Complex> row(const Lines<T>& lines, std::size_t r) {
  std::vector<Complex> x;
  for (std::size_t j = 0; j < lines.n; ++j) {
    x.emplace_back(lines.re[r * lines.n + j], lines.im[r * lines.n + j]);
  }
  return x;
}

/// Both parts of a result, one after the other.
template <class T = float>
std::vector<T> readParts(OnDevice& d, const popx::Parts& parts) {
  poplar::Tensor all = parts[0].flatten();
  if (parts.size() == 2) all = poplar::concat(all, parts[1].flatten());
  return d.read<T>(all);
}

/// Root mean square of the difference, relative to that of `wanted`.
double error(const std::vector<Complex>& got, const std::vector<Complex>& wanted) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::norm(got[i] - wanted[i]);
    size += std::norm(wanted[i]);
  }
  return std::sqrt(difference / size);
}

template <class T>
popx::Parts inputs(OnDevice& d, const Lines<T>& lines) {
  const poplar::Type type = std::is_same_v<T, double> ? popx::DOUBLE : poplar::FLOAT;
  return {d.input(type, {lines.rows, lines.n}, lines.re),
          d.input(type, {lines.rows, lines.n}, lines.im)};
}

template <class T>
double checkComplex(std::size_t rows, std::size_t n, popx::FftType type) {
  const Lines<T> lines = randomLines<T>(rows, n);
  OnDevice d;
  const auto got = readParts<T>(d, popx::fft(d.graph, inputs(d, lines), type, {n}, d.prog));
  double worst = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const bool inverse = type == popx::FftType::IFFT;
    auto wanted = dft(row(lines, r), inverse ? 1 : -1);
    std::vector<Complex> found;
    for (std::size_t k = 0; k < n; ++k) {
      if (inverse) wanted[k] /= static_cast<double>(n);
      found.emplace_back(got[r * n + k], got[(rows + r) * n + k]);
    }
    worst = std::max(worst, error(found, wanted));
  }
  return worst;
}

template <class T = float>
double cycles(std::size_t rows, std::size_t n) {
  OnDevice d;
  const Lines<T> lines{rows, n, std::vector<T>(rows * n), std::vector<T>(rows * n)};
  popx::fft(d.graph, inputs(d, lines), popx::FftType::FFT, {n}, d.prog);
  return poplar::compileGraph(d.graph, {d.prog}).image()->cost().cycles();
}

}  // namespace

TEST(every_length_up_to_80_and_some_longer) {
  std::vector<std::size_t> lengths = {97,  100, 121, 128,  243,  256,  343, 361,
                                      400, 529, 625, 1000, 1024, 1155, 1536};
  for (std::size_t n = 1; n <= 80; ++n) lengths.push_back(n);
  for (const std::size_t n : lengths) {
    for (const std::size_t rows : {1, 3, 21}) {
      if (rows == 21 && n > 400) continue;
      for (const auto type : {popx::FftType::FFT, popx::FftType::IFFT}) {
        // Lengths with a prime factor above 31 are convolutions of two longer transforms.
        const double worst = checkComplex<float>(rows, n, type);
        if (!(worst < 6e-7)) check::fail(__FILE__, __LINE__, "n ", n, " rows ", rows, ": ", worst);
      }
    }
  }
}

TEST(double_is_as_precise_as_it_can_be) {
  for (const std::size_t n : {1, 2, 3, 7, 30, 64, 67, 128, 361, 625, 768, 1009, 2048}) {
    for (const std::size_t rows : {1, 17}) {
      if (rows == 17 && n > 700) continue;
      for (const auto type : {popx::FftType::FFT, popx::FftType::IFFT}) {
        const double worst = checkComplex<double>(rows, n, type);
        if (!(worst < 1.5e-15)) check::fail(__FILE__, __LINE__, "n ", n, ": ", worst);
      }
    }
  }
}

TEST(real_lines_of_even_and_odd_length) {
  for (const std::size_t n : {1, 2, 3, 4, 5, 6, 9, 16, 37, 74, 100, 255, 1026}) {
    const std::size_t rows = 5;
    Lines<float> lines = randomLines(rows, n);
    std::fill(lines.im.begin(), lines.im.end(), 0.0f);
    OnDevice d;
    const auto x = d.input(poplar::FLOAT, {rows, n}, lines.re);
    const auto forward = popx::fft(d.graph, {x}, popx::FftType::RFFT, {n}, d.prog);
    const auto back = popx::fft(d.graph, forward, popx::FftType::IRFFT, {n}, d.prog);
    const std::size_t kept = n / 2 + 1;
    CHECK_EQ(forward[0].dim(1), kept);
    CHECK_EQ(back.size(), 1u);
    const auto got = readParts(
        d, {poplar::concat({forward[0].flatten(), forward[1].flatten(), back[0].flatten()})});
    for (std::size_t r = 0; r < rows; ++r) {
      const auto wanted = dft(row(lines, r), -1);
      for (std::size_t k = 0; k < kept; ++k) {
        const double tolerance = 1e-6 * static_cast<double>(n);
        CHECK_NEAR(got[r * kept + k], wanted[k].real(), tolerance);
        CHECK_NEAR(got[(rows + r) * kept + k], wanted[k].imag(), tolerance);
      }
      for (std::size_t j = 0; j < n; ++j) {
        CHECK_NEAR(got[2 * rows * kept + r * n + j], lines.re[r * n + j], 2e-6);
      }
    }
  }
}

TEST(three_dimensions_one_after_another) {
  const std::vector<std::size_t> shape = {2, 3, 4, 5};
  const Lines<float> lines = randomLines(2, 60);
  OnDevice d;
  const popx::Parts x = {d.input(poplar::FLOAT, shape, lines.re),
                         d.input(poplar::FLOAT, shape, lines.im)};
  const auto got = readParts(d, popx::fft(d.graph, x, popx::FftType::FFT, {3, 4, 5}, d.prog));
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t k = 0; k < 60; ++k) {
      const double k0 = static_cast<double>(k / 20) / 3, k1 = static_cast<double>(k / 5 % 4) / 4,
                   k2 = static_cast<double>(k % 5) / 5;
      Complex sum;
      for (std::size_t j = 0; j < 60; ++j) {
        const double turn = k0 * static_cast<double>(j / 20) + k1 * static_cast<double>(j / 5 % 4) +
                            k2 * static_cast<double>(j % 5);
        sum += row(lines, b)[j] * std::polar(1.0, -2 * std::numbers::pi * turn);
      }
      CHECK_NEAR(got[b * 60 + k], sum.real(), 2e-5);
      CHECK_NEAR(got[120 + b * 60 + k], sum.imag(), 2e-5);
    }
  }
}

TEST(views_are_read_as_they_look) {
  const Lines<float> lines = randomLines(6, 8);
  OnDevice d;
  popx::Parts x = inputs(d, lines);
  for (auto& part : x) part = part.transpose();
  const auto got = readParts(d, popx::fft(d.graph, x, popx::FftType::FFT, {6}, d.prog));
  for (std::size_t r = 0; r < 8; ++r) {
    std::vector<Complex> column;
    for (std::size_t j = 0; j < 6; ++j) column.push_back(row(lines, j)[r]);
    const auto wanted = dft(column, -1);
    for (std::size_t k = 0; k < 6; ++k) CHECK_NEAR(got[r * 6 + k], wanted[k].real(), 1e-5);
  }
}

TEST(a_nan_stays_in_its_line) {
  Lines<float> lines = randomLines(18, 16);
  lines.re[16] = std::numeric_limits<float>::quiet_NaN();
  OnDevice d;
  const auto got =
      readParts(d, popx::fft(d.graph, inputs(d, lines), popx::FftType::FFT, {16}, d.prog));
  for (std::size_t i = 0; i < 18 * 16; ++i) CHECK_EQ(std::isnan(got[i]), i / 16 == 1);
}

TEST(costs_grow_with_lines_and_length) {
  CHECK(cycles(1, 64) > 0);
  CHECK(cycles(2000, 64) > 1.5 * cycles(1000, 64));
  CHECK(cycles(1, 1 << 18) > 1.5 * cycles(1, 1 << 17));
  CHECK(cycles(1, 65537) > cycles(1, 65536));                  // a prime
  CHECK(cycles<double>(1, 1 << 18) > 5 * cycles(1, 1 << 18));  // software arithmetic
}

TEST(what_is_no_transform_is_refused) {
  OnDevice d;
  const auto x = d.iota({4, 6});
  CHECK_THROWS(popx::fft(d.graph, {x}, popx::FftType::FFT, {6}, d.prog), "real and imaginary");
  const auto wide = d.graph.addVariable(popx::DOUBLE, {4, 6}, "wide");
  CHECK_THROWS(popx::fft(d.graph, {x, wide}, popx::FftType::FFT, {6}, d.prog), "one type");
  const auto whole = d.graph.addVariable(poplar::INT, {4, 6}, "whole");
  CHECK_THROWS(popx::fft(d.graph, {whole}, popx::FftType::RFFT, {6}, d.prog), "needs float");
  CHECK_THROWS(popx::fft(d.graph, {x, x}, popx::FftType::FFT, {5}, d.prog), "{5}");
  CHECK_THROWS(popx::fft(d.graph, {x, x}, popx::FftType::FFT, {}, d.prog), "1 to 3 lengths");
  CHECK_THROWS(popx::fft(d.graph, {x, x}, popx::FftType::RFFT, {6}, d.prog), "real numbers");
  CHECK_THROWS(popx::fft(d.graph, {x, x}, popx::FftType::IRFFT, {6}, d.prog), "{6}");
}
