#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "Check.hpp"
#include "engine/simd/Isa.hpp"
#include "engine/simd/MapOps.hpp"

namespace ipujax::engine::simd {
IPUJAX_DECLARE_SIMD(MapFn findFloat(expr::Op, unsigned))
}  // namespace ipujax::engine::simd

/// The vector math kernels against the C library in double: error in units of the last place, and
/// the exact result for infinities, NaN, zeros and denormals.
namespace {
using ipujax::engine::ElementType;
using ipujax::engine::expr::Op;

struct Row {
  Op op;
  double (*reference)(double);
  double max_ulp;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double rsqrt(double x) { return 1 / std::sqrt(x); }
double inverse(double x) { return 1 / x; }
double geluErf(double x) {
  return std::isinf(x) && x < 0 ? -0.0 : 0.5 * x * std::erfc(x * -std::sqrt(0.5));
}

/// Slopes: near their zeros they are differences, so errors are absolute.
double geluSlope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
double geluErfSlope(double x) {
  return 0.5 * std::erfc(x * -std::sqrt(0.5)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// Distance in representable floats from the exact value, denormals included.
double ulpError(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded)) {
    if (got == rounded) return 0;
    return std::abs(got) == std::numeric_limits<float>::max() ? 1 : 1e30;
  }
  if (std::isnan(got) || std::isinf(got)) return 1e30;
  int exponent = 0;
  std::frexp(want, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(static_cast<double>(got) - want) / unit;
}

std::vector<float> samples() {
  std::vector<float> x{0.0f,
                       -0.0f,
                       1.0f,
                       -1.0f,
                       0.5f,
                       -0.5f,
                       2.0f,
                       89.0f,
                       -104.0f,
                       1e-45f,
                       -1e-45f,
                       1.1754944e-38f,
                       3.4028235e38f,
                       -3.4028235e38f,
                       88.72284f,
                       88.8f,
                       -87.4f,
                       -103.9f,
                       0.99999994f,
                       -0.99999994f,
                       1.0000001f,
                       16777216.0f,
                       1e10f,
                       1e30f,
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN()};
  std::mt19937 random(7);
  for (int k = 0; k < 60000; ++k) {  // all magnitudes
    const auto bits = static_cast<std::uint32_t>(random());
    x.push_back(std::bit_cast<float>(bits));
  }
  std::uniform_real_distribution<float> unit(-1, 1);
  for (float scale : {1.0f, 4.0f, 12.0f, 110.0f})
    for (int k = 0; k < 30000; ++k) x.push_back(scale * unit(random));
  return x;
}

void measure(const Row& row) {
  const auto x = samples();
  std::vector<float> y(x.size());
  const auto fn = ipujax::engine::simd::findMap({row.op, ElementType::kFloat, ElementType::kFloat});
  CHECK(fn != nullptr);
  fn(x.data(), nullptr, nullptr, y.data(), static_cast<std::int64_t>(x.size()), 0);
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double error = ulpError(y[k], row.reference(static_cast<double>(x[k])));
    if (!(error <= worst)) {
      worst = error;
      at = k;
    }
  }
  if (std::getenv("IPUJAX_SHOW_ULP")) std::printf("%-12s %.3f ulp\n", nameOf(row.op), worst);
  if (worst > row.max_ulp)
    check::fail(__FILE__, __LINE__, nameOf(row.op), "(", x[at], ") = ", y[at], ", exact ",
                row.reference(static_cast<double>(x[at])), ": ", worst, " ulp");
}

using D = double (*)(double);
const Row kRows[] = {
    {Op::kExp, static_cast<D>(std::exp), 1.1},
    {Op::kExp2, static_cast<D>(std::exp2), 1.1},
    {Op::kExpm1, static_cast<D>(std::expm1), 2},
    {Op::kLog, static_cast<D>(std::log), 1.5},
    {Op::kLog1p, static_cast<D>(std::log1p), 2},
    {Op::kTanh, static_cast<D>(std::tanh), 3},
    {Op::kSigmoid, sigmoid, 2.5},
    {Op::kErf, static_cast<D>(std::erf), 2},
    {Op::kErfc, static_cast<D>(std::erfc), 1.1},
    {Op::kGeluErf, geluErf, 6},  // in float; its operand's square is exact
    {Op::kRsqrt, rsqrt, 1.6},
    {Op::kSqrt, static_cast<D>(std::sqrt), 0.51},
    {Op::kInverse, inverse, 0.51},
    {Op::kSin, static_cast<D>(std::sin), 0.6},
    {Op::kCos, static_cast<D>(std::cos), 0.6},
    {Op::kTan, static_cast<D>(std::tan), 1},
    {Op::kAsin, static_cast<D>(std::asin), 0.6},
    {Op::kAcos, static_cast<D>(std::acos), 0.6},
    {Op::kAtan, static_cast<D>(std::atan), 0.6},
    {Op::kSinh, static_cast<D>(std::sinh), 0.6},
    {Op::kCosh, static_cast<D>(std::cosh), 0.6},
    {Op::kAsinh, static_cast<D>(std::asinh), 0.6},
    {Op::kAcosh, static_cast<D>(std::acosh), 0.6},
    {Op::kAtanh, static_cast<D>(std::atanh), 0.6},
    {Op::kCbrt, static_cast<D>(std::cbrt), 0.6},
    {Op::kLogGamma, static_cast<D>(std::lgamma), 8},
    {Op::kFloor, static_cast<D>(std::floor), 0},
    {Op::kCeil, static_cast<D>(std::ceil), 0},
    {Op::kTrunc, static_cast<D>(std::trunc), 0},
    {Op::kRound, static_cast<D>(std::round), 0},
    {Op::kNearbyInt, static_cast<D>(std::nearbyint), 0},
};
}  // namespace

TEST(gelu_and_its_gradients_are_accurate) {
  const struct {
    Op op;
    double (*reference)(double);
  } rows[] = {
      {Op::kGelu, gelu}, {Op::kGeluGradient, geluSlope}, {Op::kGeluErfGradient, geluErfSlope}};
  std::vector<float> x;
  for (int k = -60000; k <= 60000; ++k) x.push_back(static_cast<float>(k) / 4000);
  const std::vector<float> twos(x.size(), 2.0f);
  for (const auto& row : rows) {
    std::vector<float> y(x.size());
    const bool is_gradient = row.op != Op::kGelu;
    const auto fn =
        ipujax::engine::simd::findMap({row.op, ElementType::kFloat, ElementType::kFloat});
    CHECK(fn != nullptr);
    fn(x.data(), is_gradient ? twos.data() : nullptr, nullptr, y.data(),
       static_cast<std::int64_t>(x.size()), 0);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double want = (is_gradient ? 2 : 1) * row.reference(static_cast<double>(x[k]));
      CHECK_NEAR(y[k], want, 3e-6 * std::max(1.0, std::abs(want)));
    }
  }
}

TEST(unary_functions_are_accurate_everywhere) {
  std::string failures;
  for (const auto& row : kRows) {
    try {
      measure(row);
    } catch (const check::Failure& e) {
      failures += std::string(e.what()) + "\n";
    }
  }
  if (!failures.empty()) throw check::Failure(failures);
}

TEST(zeros_keep_their_sign) {
  for (Op op : {Op::kSin, Op::kTan, Op::kAsin, Op::kAtan, Op::kSinh, Op::kAsinh, Op::kAtanh,
                Op::kTanh, Op::kErf, Op::kExpm1, Op::kLog1p, Op::kCbrt, Op::kSqrt, Op::kSignum,
                Op::kFloor, Op::kRound, Op::kErfInv}) {
    const auto fn = ipujax::engine::simd::findMap({op, ElementType::kFloat, ElementType::kFloat});
    const float x[2] = {0.0f, -0.0f};
    float y[2] = {5, 5};
    fn(x, nullptr, nullptr, y, 2, 0);
    if (y[0] != 0 || y[1] != 0 || std::signbit(y[0]) || !std::signbit(y[1]))
      check::fail(__FILE__, __LINE__, nameOf(op), " of zeros: ", y[0], " ", y[1]);
  }
}

TEST(erf_inv_inverts_erf) {
  const auto fn =
      ipujax::engine::simd::findMap({Op::kErfInv, ElementType::kFloat, ElementType::kFloat});
  std::vector<float> x;
  for (int k = -9999; k <= 9999; ++k) x.push_back(static_cast<float>(k) / 10000.0f);
  for (float d = 1e-4f; d > 6e-8f; d *= 0.9f) x.push_back(1.0f - d);
  x.push_back(1e-20f);
  std::vector<float> y(x.size());
  fn(x.data(), nullptr, nullptr, y.data(), static_cast<std::int64_t>(x.size()), 0);
  for (std::size_t k = 0; k < x.size(); ++k) {
    // Newton's correction of the result, from erfc where erf has no digits left.
    const double v = y[k];
    const double want = static_cast<double>(x[k]);
    const double miss = want > 0.5 ? std::erfc(v) - (1.0 - want) : want - std::erf(v);
    const double correction = miss / (2 / std::sqrt(M_PI) * std::exp(-v * v));
    CHECK_NEAR(correction / (std::abs(v) + 1e-300), 0.0, 7e-8);
  }
  float ends[4] = {1.0f, -1.0f, 1.5f, std::numeric_limits<float>::quiet_NaN()};
  fn(ends, nullptr, nullptr, ends, 4, 0);
  CHECK(std::isinf(ends[0]) && ends[0] > 0 && std::isinf(ends[1]) && ends[1] < 0);
  CHECK(std::isnan(ends[2]) && std::isnan(ends[3]));
}

TEST(binary_functions_are_accurate_everywhere) {
  const auto x = samples();
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> z(x.size());
  std::vector<float> y(x.size());
  std::mt19937 random(11);
  for (auto& v : y) {
    const auto pick = random() % 4;
    v = pick == 0   ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
        : pick == 1 ? static_cast<float>(static_cast<int>(random() % 21) - 10)
        : pick == 2 ? static_cast<float>(random() % 1000) / 100.0f - 5.0f
                    : x[random() % x.size()];
  }
  struct {
    Op op;
    double (*reference)(double, double);
    double max_ulp;
  } const rows[] = {{Op::kPower, static_cast<double (*)(double, double)>(std::pow), 0.6},
                    {Op::kAtan2, static_cast<double (*)(double, double)>(std::atan2), 0.6},
                    {Op::kRemainder, static_cast<double (*)(double, double)>(std::fmod), 0.0}};
  for (const auto& row : rows) {
    const auto fn =
        ipujax::engine::simd::findMap({row.op, ElementType::kFloat, ElementType::kFloat});
    fn(x.data(), y.data(), nullptr, z.data(), n, 0);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double want = row.reference(x[k], y[k]);
      const double error = ulpError(z[k], want);
      if (!(error <= row.max_ulp))
        check::fail(__FILE__, __LINE__, nameOf(row.op), "(", x[k], ", ", y[k], ") = ", z[k],
                    ", exact ", want, ": ", error, " ulp");
    }
  }
}

TEST(instruction_sets_agree) {
  using namespace ipujax::engine;
  const auto x = samples();
  const auto n = static_cast<std::int64_t>(x.size());
  const auto evaluate = [&](simd::MapFn fn) {
    std::vector<float> y(x.size());
    fn(x.data(), nullptr, nullptr, y.data(), n, 0);
    return y;
  };
  const auto agree = [&](Op op, simd::MapFn plain, simd::MapFn fast) {
    const auto a = evaluate(plain);
    const auto b = evaluate(fast);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double error = ulpError(b[k], static_cast<double>(a[k]));
      if (error > (op == Op::kGeluErf ? 6 : 3))
        check::fail(__FILE__, __LINE__, nameOf(op), "(", x[k], ") = ", b[k], " and ", a[k]);
    }
  };
  for (int k = 0; k < expr::kOpCount; ++k) {
    const auto op = static_cast<Op>(k);
    if (numOperands(op) != 1 || op == Op::kIsFinite || op == Op::kIsInf || op == Op::kIsNan)
      continue;
#ifdef IPUJAX_X86
    for (auto level : {Isa::kAvx2, Isa::kAvx512}) {
      if (level > isa()) continue;
      const bool wide = level == Isa::kAvx512;
      if (auto plain = simd::baseline::findFloat(op, 0))
        agree(op, plain, wide ? simd::avx512::findFloat(op, 0) : simd::avx2::findFloat(op, 0));
    }
#endif
  }
}
