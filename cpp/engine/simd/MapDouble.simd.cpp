#include <cmath>
#include <cstring>

#include "engine/simd/MapLoops.hpp"

/// double: what programs compute in that emulate 64-bit types (ipu_x64). An IPU has none, so these
/// loops are plain and the C library's functions do for the rest.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

#define IPUJAX_D1(Name, expression)                          \
  struct Name {                                              \
    double operator()(double x) const { return expression; } \
  };
#define IPUJAX_Q1(Name, expression)                                \
  struct Name {                                                    \
    std::uint8_t operator()(double x) const { return expression; } \
  };
#define IPUJAX_D2(Name, expression)                                    \
  struct Name {                                                        \
    double operator()(double a, double b) const { return expression; } \
  };
#define IPUJAX_Q2(Name, expression)                                          \
  struct Name {                                                              \
    std::uint8_t operator()(double a, double b) const { return expression; } \
  };

// No name of <cmath> itself, and no `std::isnan`: -ffast-math is off, plain comparisons do.
IPUJAX_D1(Abs, std::fabs(x))
IPUJAX_D1(Acos, std::acos(x))
IPUJAX_D1(Acosh, std::acosh(x))
IPUJAX_D1(Asin, std::asin(x))
IPUJAX_D1(Asinh, std::asinh(x))
IPUJAX_D1(Atan, std::atan(x))
IPUJAX_D1(Atanh, std::atanh(x))
IPUJAX_D1(Cbrt, std::cbrt(x))
IPUJAX_D1(Ceil, std::ceil(x))
IPUJAX_D1(Cos, std::cos(x))
IPUJAX_D1(Cosh, std::cosh(x))
IPUJAX_D1(Erf, std::erf(x))
IPUJAX_D1(Erfc, std::erfc(x))
IPUJAX_D1(Exp, std::exp(x))
IPUJAX_D1(Exp2, std::exp2(x))
IPUJAX_D1(Expm1, std::expm1(x))
IPUJAX_D1(Floor, std::floor(x))
IPUJAX_D1(GeluErf, 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440)))
IPUJAX_D1(Inverse, 1.0 / x)
IPUJAX_D1(Log, std::log(x))
IPUJAX_D1(Log1p, std::log1p(x))
IPUJAX_D1(NearbyInt, std::nearbyint(x))
IPUJAX_D1(Negate, -x)
IPUJAX_D1(Relu, x < 0.0 ? 0.0 : x)
IPUJAX_D1(Round, std::round(x))
IPUJAX_D1(Rsqrt, 1.0 / std::sqrt(x))
IPUJAX_D1(Sigmoid, 1.0 / (1.0 + std::exp(-x)))
IPUJAX_D1(Signum, x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x))
IPUJAX_D1(Sin, std::sin(x))
IPUJAX_D1(Sinh, std::sinh(x))
IPUJAX_D1(Sqrt, std::sqrt(x))
IPUJAX_D1(Square, x* x)
IPUJAX_D1(Tan, std::tan(x))
IPUJAX_D1(Tanh, std::tanh(x))
IPUJAX_D1(Trunc, std::trunc(x))
IPUJAX_Q1(IsFinite, std::fabs(x) <= 1.7976931348623157e308)
IPUJAX_Q1(IsInf, std::fabs(x) > 1.7976931348623157e308)
IPUJAX_Q1(IsNan, x != x)
IPUJAX_D2(Add, a + b)
IPUJAX_D2(Atan2, std::atan2(a, b))
IPUJAX_D2(Divide, a / b)
IPUJAX_D2(Multiply, a* b)
IPUJAX_D2(Power, std::pow(a, b))
IPUJAX_D2(Remainder, std::fmod(a, b))
IPUJAX_D2(Subtract, a - b)
// Of equal operands only zeros differ: the larger is the one without a sign.
IPUJAX_D2(Maximum, (a != a || a > b) ? a : (a == b ? (std::signbit(a) ? b : a) : b))
IPUJAX_D2(Minimum, (a != a || a < b) ? a : (a == b ? (std::signbit(a) ? a : b) : b))
IPUJAX_D2(InvStdDevToVariance, 1.0 / (a * a) - b)
IPUJAX_D2(VarianceToInvStdDev, 1.0 / std::sqrt(a + b))
IPUJAX_Q2(Equal, a == b)
IPUJAX_Q2(NotEqual, a != b)
IPUJAX_Q2(Less, a < b)
IPUJAX_Q2(LessEqual, a <= b)
IPUJAX_Q2(Greater, a > b)
IPUJAX_Q2(GreaterEqual, a >= b)

struct Clamp {
  double operator()(double x, double low, double high) const {
    return Minimum{}(Maximum{}(low, x), high);
  }
};

/// Winitzki's first guess, then Newton on erf (erfc in the tails) to the last bit but a few.
struct ErfInv {
  double operator()(double x) const {
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
};

/// lgamma of the C library writes a global sign; its re-entrant form does not.
struct LogGamma {
  double operator()(double x) const {
    int sign = 0;
    return ::lgamma_r(x, &sign);
  }
};

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

MapFn findUnary(expr::Op op) {
  using expr::Op;
  using D = double;
  using u8 = std::uint8_t;
  switch (op) {
#define IPUJAX_CASE(Name) \
  case Op::k##Name:       \
    return unary<Name, D>();
    IPUJAX_CASE(Abs)
    IPUJAX_CASE(Acos)
    IPUJAX_CASE(Acosh)
    IPUJAX_CASE(Asin)
    IPUJAX_CASE(Asinh)
    IPUJAX_CASE(Atan)
    IPUJAX_CASE(Atanh)
    IPUJAX_CASE(Cbrt)
    IPUJAX_CASE(Ceil)
    IPUJAX_CASE(Cos)
    IPUJAX_CASE(Cosh)
    IPUJAX_CASE(Erf)
    IPUJAX_CASE(Erfc)
    IPUJAX_CASE(ErfInv)
    IPUJAX_CASE(Exp)
    IPUJAX_CASE(Exp2)
    IPUJAX_CASE(Expm1)
    IPUJAX_CASE(Floor)
    IPUJAX_CASE(GeluErf)
    IPUJAX_CASE(Inverse)
    IPUJAX_CASE(Log)
    IPUJAX_CASE(Log1p)
    IPUJAX_CASE(LogGamma)
    IPUJAX_CASE(NearbyInt)
    IPUJAX_CASE(Negate)
    IPUJAX_CASE(Relu)
    IPUJAX_CASE(Round)
    IPUJAX_CASE(Rsqrt)
    IPUJAX_CASE(Sigmoid)
    IPUJAX_CASE(Signum)
    IPUJAX_CASE(Sin)
    IPUJAX_CASE(Sinh)
    IPUJAX_CASE(Sqrt)
    IPUJAX_CASE(Square)
    IPUJAX_CASE(Tan)
    IPUJAX_CASE(Tanh)
    IPUJAX_CASE(Trunc)
#undef IPUJAX_CASE
    case Op::kIsFinite:
      return unary<IsFinite, D, u8>();
    case Op::kIsInf:
      return unary<IsInf, D, u8>();
    case Op::kIsNan:
      return unary<IsNan, D, u8>();
    case Op::kReducePrecision:
      return reduceDouble;
    default:
      return nullptr;
  }
}
}  // namespace

MapFn findDouble(expr::Op op, unsigned s) {
  using expr::Op;
  using D = double;
  using u8 = std::uint8_t;
  switch (op) {
#define IPUJAX_CASE(Name) \
  case Op::k##Name:       \
    return binary<Name, D>(s);
    IPUJAX_CASE(Add)
    IPUJAX_CASE(Atan2)
    IPUJAX_CASE(Divide)
    IPUJAX_CASE(InvStdDevToVariance)
    IPUJAX_CASE(Maximum)
    IPUJAX_CASE(Minimum)
    IPUJAX_CASE(Multiply)
    IPUJAX_CASE(Power)
    IPUJAX_CASE(Remainder)
    IPUJAX_CASE(Subtract)
    IPUJAX_CASE(VarianceToInvStdDev)
#undef IPUJAX_CASE
    case Op::kEqual:
      return binary<Equal, D, u8>(s);
    case Op::kNotEqual:
      return binary<NotEqual, D, u8>(s);
    case Op::kLessThan:
      return binary<Less, D, u8>(s);
    case Op::kLessThanEqual:
      return binary<LessEqual, D, u8>(s);
    case Op::kGreaterThan:
      return binary<Greater, D, u8>(s);
    case Op::kGreaterThanEqual:
      return binary<GreaterEqual, D, u8>(s);
    case Op::kClamp:
      return ternary<Clamp, D, D, D, D>(s);
    default:
      return findUnary(op);
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
