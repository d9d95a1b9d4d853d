#include <cmath>
#include <cstring>

#include "engine/simd/MapLoops.hpp"

/// double, for programs that emulate 64-bit types (ipu_x64). An IPU has none, so these loops of
/// ElementwiseOps.def are plain and use the C library's functions for the rest.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

IPUJAX_INLINE double maximumOf(double a, double b) {
  return (a != a || a > b) ? a : (a == b ? (std::signbit(a) ? b : a) : b);
}
IPUJAX_INLINE double minimumOf(double a, double b) {
  return (a != a || a < b) ? a : (a == b ? (std::signbit(a) ? a : b) : b);
}

double geluGradient(double x, double g) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  const double slope = 0.7978845608028654 * (1.0 + 0.134145 * x * x);
  return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t) * (1.0 + t) * slope);
}

double geluErfGradient(double x, double g) {
  const double density = 0.3989422804014327 * std::exp(-0.5 * x * x);
  return g * (0.5 * std::erfc(-0.7071067811865476 * x) + x * density);
}

/// Winitzki's first guess, then Newton on erf (erfc in the tails), exact to the last few bits.
double erfInv(double x) {
  if (x != x || std::fabs(x) > 1.0) return __builtin_nan("");
  if (std::fabs(x) == 1.0) return std::copysign(__builtin_inf(), x);
  const double left = std::log1p(-x * x);
  const double mean = 2.0 / (3.14159265358979323846 * 0.147) + 0.5 * left;
  double y = std::copysign(std::sqrt(std::sqrt(mean * mean - left / 0.147) - mean), x);
  for (int step = 0; step < 4; ++step) {
    const double rest = (1.0 - std::fabs(x)) - std::erfc(std::fabs(y));
    const double error = std::fabs(x) < 0.5 ? std::erf(y) - x : (x < 0.0 ? -rest : rest);
    y -= error / (1.12837916709551257390 * std::exp(-y * y));
  }
  return x == 0.0 ? x : y;
}

/// lgamma of the C library writes a global sign; its re-entrant form does not.
double logGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

void reduceDouble(Any a, Any, Any, void* out, std::int64_t n, std::int64_t immediate) {
  const int exponent = static_cast<int>(immediate / 256);
  const int mantissa = static_cast<int>(immediate % 256);
  for (std::int64_t k = 0; k < n; ++k) {
    std::uint64_t x = 0;
    std::memcpy(&x, static_cast<const std::byte*>(a) + 8 * k, 8);
    const std::uint64_t sign = x >> 63 << 63;
    constexpr std::uint64_t kInfinity = std::uint64_t{0x7ff} << 52;
    if ((x & ~sign) <= kInfinity) {
      if (mantissa < 52) {
        const std::uint64_t last = std::uint64_t{1} << (52 - mantissa);
        x += (last >> 1) - 1 + ((x >> (52 - mantissa)) & 1);
        x &= ~(last - 1);
      }
      if (exponent < 11) {
        const std::uint64_t bias = (std::uint64_t{1} << (exponent - 1)) - 1;
        const std::uint64_t at = x & kInfinity;
        if (at > (1023 + bias) << 52) x = sign | kInfinity;
        if (at <= (1023 - bias) << 52) x = sign;
      }
    }
    std::memcpy(static_cast<std::byte*>(out) + 8 * k, &x, 8);
  }
}

}  // namespace

MapFn findDouble(expr::Op op, unsigned scalars) {
  if (op == expr::Op::kReducePrecision) return reduceDouble;
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define D(...) IPUJAX_LOOP(double, __VA_ARGS__)
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
