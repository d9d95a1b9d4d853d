#pragma once
#include <cstdint>
#include <limits>

#include "engine/ops/FloatFormulas.hpp"
#include "engine/simd/Isa.hpp"
#include "engine/simd/Registers.hpp"

/// Branch-free elementary functions that compilers vectorise: those of FloatFormulas on single
/// floats, and others that are computed in double. Included by *.simd.cpp only, so each instruction
/// set has its own copy. Coefficients: as in FloatFormulas.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

#define IPUJAX_INLINE static inline __attribute__((always_inline))
#define IPUJAX_FN __attribute__((always_inline))  // of members and lambdas

IPUJAX_INLINE std::uint32_t bitsOf(float x) { return __builtin_bit_cast(std::uint32_t, x); }
IPUJAX_INLINE float floatOf(std::uint32_t x) { return __builtin_bit_cast(float, x); }
IPUJAX_INLINE std::uint64_t bitsOf(double x) { return __builtin_bit_cast(std::uint64_t, x); }
IPUJAX_INLINE double doubleOf(std::uint64_t x) { return __builtin_bit_cast(double, x); }
IPUJAX_INLINE float absOf(float x) { return floatOf(bitsOf(x) & 0x7fffffffu); }
IPUJAX_INLINE double absOf(double x) { return doubleOf(bitsOf(x) & ~(1ull << 63)); }
IPUJAX_INLINE float withSign(float magnitude, float sign) {
  return floatOf(bitsOf(magnitude) | (bitsOf(sign) & 0x80000000u));
}
/// +0 is larger than -0.
IPUJAX_INLINE float maximumOf(float a, float b) {
  return (a != a || a > b) ? a : (a == b ? floatOf(bitsOf(a) & bitsOf(b)) : b);
}
IPUJAX_INLINE float minimumOf(float a, float b) {
  return (a != a || a < b) ? a : (a == b ? floatOf(bitsOf(a) | bitsOf(b)) : b);
}
IPUJAX_INLINE double withSign(double magnitude, double sign) {
  return doubleOf(bitsOf(magnitude) | (bitsOf(sign) & (1ull << 63)));
}
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Fused if the CPU can; saving a rounding only makes results better.
#ifdef __FMA__
IPUJAX_INLINE float madd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
IPUJAX_INLINE double madd(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
IPUJAX_INLINE float madd(float a, float b, float c) { return a * b + c; }
IPUJAX_INLINE double madd(double a, double b, double c) { return a * b + c; }
#endif

template <typename T>
IPUJAX_INLINE T polynomial(T, T c0) {
  return c0;
}
template <typename T, typename... Rest>
IPUJAX_INLINE T polynomial(T x, T c0, Rest... rest) {
  return madd(polynomial(x, rest...), x, c0);
}

// ---- float -------------------------------------------------------------------------------------

/// Single elements, for FloatFormulas.
struct Plain {
  using F = float;
  using U = std::uint32_t;
  IPUJAX_FN static float madd(float a, float b, float c) {
    return IPUJAX_ISA_NAMESPACE::madd(a, b, c);
  }
  IPUJAX_FN static U bits(float x) { return bitsOf(x); }
  IPUJAX_FN static float of(U x) { return floatOf(x); }
  IPUJAX_FN static float choose(bool is_true, float a, float b) { return is_true ? a : b; }
  IPUJAX_FN static bool isNan(float x) { return x != x; }
  IPUJAX_FN static U least(U a, U b) { return a < b ? a : b; }
  IPUJAX_FN static U leastSigned(U a, U b) {
    return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
  }
  IPUJAX_FN static U shiftSigned(U x, int n) {
    return static_cast<U>(static_cast<std::int32_t>(x) >> n);
  }
  IPUJAX_FN static float toFloat(U x) { return static_cast<float>(static_cast<std::int32_t>(x)); }
};
using Formulas = FloatFormulas<Plain>;

IPUJAX_INLINE float expFloat(float x) { return Formulas::exp(x); }
IPUJAX_INLINE float expm1Float(float x) { return Formulas::expm1(x); }
IPUJAX_INLINE float logFloat(float x) { return Formulas::log(x); }
IPUJAX_INLINE float log1pFloat(float x) { return Formulas::log1p(x); }
IPUJAX_INLINE float tanhFloat(float x) { return Formulas::tanh(x); }
IPUJAX_INLINE float sigmoidFloat(float x) { return Formulas::sigmoid(x); }
IPUJAX_INLINE float erfFloat(float x) { return Formulas::erf(x); }
IPUJAX_INLINE float geluErfFloat(float x) { return Formulas::geluErf(x); }
IPUJAX_INLINE float geluErfGradientFloat(float x, float g) {
  return Formulas::geluErfGradient(x, g);
}
IPUJAX_INLINE float geluFloat(float x) { return Formulas::gelu(x); }
IPUJAX_INLINE float geluGradientFloat(float x, float g) { return Formulas::geluGradient(x, g); }

/// exp(x) for x in [-700, 700], to the precision of floats in the range of doubles.
IPUJAX_INLINE double expFloatWide(float x) {
  const auto split = Formulas::splitExp(x);
  const double power2 = doubleOf((std::uint64_t{bitsOf(split.shifted)} + 1023u) << 52);
  return static_cast<double>(Formulas::expOfRest(split.r)) * power2;
}

// ---- double, for float results -----------------------------------------------------------------

IPUJAX_INLINE double roundDouble(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }
IPUJAX_INLINE double power2Double(double n) {  // n in [-1022, 1023]
  return doubleOf((bitsOf(n + 6755399441055744.0) + 1023u) << 52);
}

/// exp(r) - 1 for |r| <= ln 2 / 2. The functions after it take |x| up to 700.
IPUJAX_INLINE double expm1Poly(double r) {
  const double q = polynomial(r, 0.5000000000000008, 0.1666666666663008, 0.041666666666550195,
                              0.008333333362932847, 0.0013888888940987562, 0.0001984119549759957,
                              2.4801493774374943e-05, 2.7630862314103023e-06,
                              2.763050195903096e-07);  // 1.5e-15
  return madd(r * r, q, r);
}
IPUJAX_INLINE double expDoubleInRange(double x) {
  const double n = roundDouble(x * 1.4426950408889634);
  const double r = madd(n, -1.90821492927058770002e-10, madd(n, -6.93147180369123816490e-01, x));
  return (expm1Poly(r) + 1.0) * power2Double(n);
}
IPUJAX_INLINE double expDouble(double x) {
  const double y = x > 700.0 ? 700.0 : x;
  return expDoubleInRange(y < -700.0 ? -700.0 : y);
}
IPUJAX_INLINE float exp2Float(float x) {
  const float r = static_cast<float>(expDouble(static_cast<double>(x) * 0.6931471805599453));
  return x != x ? x : r;
}
IPUJAX_INLINE double expm1Double(double x) {
  double y = x > 700.0 ? 700.0 : x;
  y = y < -700.0 ? -700.0 : y;
  const double n = roundDouble(y * 1.4426950408889634);
  const double r = madd(n, -1.90821492927058770002e-10, madd(n, -6.93147180369123816490e-01, y));
  const double s = power2Double(n);
  return madd(s, expm1Poly(r), s - 1.0);
}

/// log(m) + e ln 2 with s = (m - 1) / (m + 1); the relative error is 1e-15.
IPUJAX_INLINE double logDouble(double x) {  // x normal and positive
  const std::uint64_t bits = bitsOf(x) + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
  const double e = doubleOf((bits >> 52) | 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
  const double m = doubleOf((bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  const double p = polynomial(z, 0.6666666666666764, 0.39999999999224933, 0.28571428780352265,
                              0.2222219497570333, 0.18183740308609192, 0.15309767085491427,
                              0.14836991389852158);  // 8.8e-18
  return madd(e, 0.6931471805599453, madd(s * z, p, 2.0 * s));
}
IPUJAX_INLINE double log1pDouble(double x) {  // x > -1
  const double u = 1.0 + x;
  const double log = logDouble(u) + (x - (u - 1.0)) / u;
  return absOf(x) < 1e-17 ? x : log;
}

/// x minus the nearest multiple of pi/2, and which multiple; |x| < 2^28. pi/2 is in two parts, the
/// first of 25 bits so that n times it is exact.
struct Quadrant {
  double r;
  std::uint64_t n;
};
IPUJAX_INLINE Quadrant reduceAngle(double x) {
  const double shifted = madd(x, 0.6366197723675814, 6755399441055744.0);
  const double n = shifted - 6755399441055744.0;
  const double r = madd(n, -1.57079631090164184570e+00, x) - n * 1.58932547735281966916e-08;
  return {r, bitsOf(shifted)};
}
// Terms are in pairs for a short dependency chain: some loops need one sine to compute the next.
IPUJAX_INLINE double sinPoly(double r) {
  const double z = r * r;
  const double z2 = z * z;
  const double low = madd(z, 0.008333333325272592, -0.16666666666631602);
  const double high = madd(z, 2.755535779080736e-06, -0.0001984126382326455);
  const double rz = r * z;
  return madd(rz * z2, madd(z2, -2.4761653063690008e-08, high), madd(rz, low, r));
}
IPUJAX_INLINE double cosPoly(double r) {
  const double z = r * r;
  const double z2 = z * z;
  const double low = madd(z, -0.0013888883750297978, 0.04166666662279234);
  const double high = madd(z, -2.7210168457572456e-07, 2.4799519178564185e-05);
  return madd(z2, madd(z2, high, low), madd(z, -0.5, 1.0));
}
/// sin(x + shift pi/2).
IPUJAX_INLINE float sinShifted(float x, std::uint64_t shift) {
  const auto [r, n0] = reduceAngle(static_cast<double>(x));
  const std::uint64_t n = n0 + shift;
  const double s = sinPoly(r);
  const double c = cosPoly(r);
  const double v = (n & 1u) ? c : s;
  return static_cast<float>(doubleOf(bitsOf(v) ^ ((n & 2u) << 62)));
}
IPUJAX_INLINE float tanFloat(float x) {
  const auto [r, n] = reduceAngle(static_cast<double>(x));
  const double s = sinPoly(r);
  const double c = cosPoly(r);
  const double top = (n & 1u) ? -c : s;
  const double bottom = (n & 1u) ? s : c;
  return static_cast<float>(top / bottom);
}

IPUJAX_INLINE double atanUnit(double q) {  // q in [0, 1], 8.4e-12
  return q * polynomial(q * q, 0.9999999999916686, -0.33333333034024876, 0.199999822046603,
                        -0.14285296987563717, 0.11105988506353696, -0.09053026583092556,
                        0.0750904136118758, -0.06054707356285036, 0.04415864988436095,
                        -0.026539000519792855, 0.011779637333550724, -0.0033290240786410393,
                        0.00044141968231924887);
}
IPUJAX_INLINE float atanFloat(float x) {
  const double a = absOf(static_cast<double>(x));
  const bool big = a > 1.0;
  const double t = atanUnit(big ? 1.0 / a : a);
  return withSign(static_cast<float>(big ? 1.5707963267948966 - t : t), x);
}
IPUJAX_INLINE float atan2Float(float y, float x) {
  const double ay = absOf(static_cast<double>(y));
  const double ax = absOf(static_cast<double>(x));
  const bool steep = ay > ax;
  const double low = steep ? ax : ay;
  const double high = steep ? ay : ax;
  double q = low / high;
  q = high == 0.0 ? 0.0 : q;
  q = low == static_cast<double>(kInfinity) ? 1.0 : q;
  double t = atanUnit(q);
  t = steep ? 1.5707963267948966 - t : t;
  t = (bitsOf(x) >> 31) ? 3.141592653589793 - t : t;
  const float result = withSign(static_cast<float>(t), y);
  return (x != x || y != y) ? kNan : result;
}
IPUJAX_INLINE double asinHalf(double t) {  // t in [0, 0.5], 1e-12
  const double z = t * t;
  return madd(t * z,
              polynomial(z, 0.1666666662657888, 0.07500005058454272, 0.044640681529415395,
                         0.03042695238687883, 0.021861966340101943, 0.02066441116514586,
                         0.0019341640227096362, 0.032957088330072715),
              t);
}
/// asin and acos of |x| <= 1; NaN outside.
IPUJAX_INLINE float asinFloat(float x) {
  const double a = absOf(static_cast<double>(x));
  const bool big = a > 0.5;
  const double t = asinHalf(big ? __builtin_sqrt((1.0 - a) * 0.5) : a);
  return withSign(static_cast<float>(big ? 1.5707963267948966 - 2.0 * t : t), x);
}
IPUJAX_INLINE float acosFloat(float x) {
  const double a = absOf(static_cast<double>(x));
  const bool big = a > 0.5;
  const double t = asinHalf(big ? __builtin_sqrt((1.0 - a) * 0.5) : a);
  const double near = x < 0.0f ? 3.141592653589793 - 2.0 * t : 2.0 * t;
  const double middle = 1.5707963267948966 - (x < 0.0f ? -t : t);
  return static_cast<float>(big ? near : middle);
}
IPUJAX_INLINE float sinhFloat(float x) {
  const double t = expm1Double(absOf(static_cast<double>(x)));
  return x != x ? x : withSign(static_cast<float>(0.5 * (t + t / (t + 1.0))), x);
}
IPUJAX_INLINE float coshFloat(float x) {
  const double t = expDouble(absOf(static_cast<double>(x)));
  return x != x ? x : static_cast<float>(0.5 * (t + 1.0 / t));
}
IPUJAX_INLINE float asinhFloat(float x) {
  const double a = absOf(static_cast<double>(x));
  const double t = log1pDouble(a + a * a / (1.0 + __builtin_sqrt(a * a + 1.0)));
  return (x - x != 0.0f) ? x : withSign(static_cast<float>(t), x);
}
IPUJAX_INLINE float acoshFloat(float x) {
  const double t = static_cast<double>(x) - 1.0;
  const double r = log1pDouble(t + __builtin_sqrt(2.0 * t + t * t));
  const float result = x == kInfinity ? x : static_cast<float>(r);
  return (x < 1.0f || x != x) ? kNan : result;
}
IPUJAX_INLINE float atanhFloat(float x) {
  const double a = absOf(static_cast<double>(x));
  const double t = 0.5 * log1pDouble(2.0 * a / (1.0 - a));
  float result = a == 1.0 ? kInfinity : static_cast<float>(t);
  result = withSign(result, x);
  return (a > 1.0 || x != x) ? kNan : result;
}
IPUJAX_INLINE float cbrtFloat(float x) {
  const float a = absOf(x);
  const float scaled = a < 1e-30f ? a * 1073741824.0f : a;  // 2^30: cube root 2^10
  const auto third = static_cast<std::int32_t>(
      static_cast<float>(static_cast<std::int32_t>(bitsOf(scaled))) * 0.33333334f);
  const double d = static_cast<double>(scaled);
  double y = static_cast<double>(floatOf(static_cast<std::uint32_t>(third + 709921077)));
  double c = y * y * y;
  y = y * (c + 2.0 * d) / (2.0 * c + d);
  c = y * y * y;
  y = y * (c + 2.0 * d) / (2.0 * c + d);
  y = a < 1e-30f ? y * 9.765625e-4 : y;
  const float result = withSign(static_cast<float>(y), x);
  return (x == 0.0f || x - x != 0.0f) ? x : result;
}
/// exp(x^2) erfc(x) for x >= 0 by a polynomial in (x - 2.5) / (x + 2.5); 2.5e-12 up to 10.6.
IPUJAX_INLINE double erfcDouble(double x) {
  double a = absOf(x);
  a = a > 10.6 ? 10.6 : a;
  const double v = (a - 2.5) / (a + 2.5);
  const double p =
      polynomial(v, 0.21080636406083517, -0.37173673394039713, 0.2517131932625505,
                 -0.1250330529540512, 0.039922537913784716, -0.003993690503498019,
                 -0.0026423527182560754, 0.0008758306436786042, 0.00022829261651260402,
                 -0.00012854089043665108, -3.383141464264315e-05, 1.7940213527782567e-05,
                 6.760660950422453e-06, -1.7093672816429568e-06, -9.211826408318726e-07);
  const double r = p * expDouble(-a * a);
  return x < 0.0 ? 2.0 - r : r;
}
IPUJAX_INLINE float erfcFloat(float x) {
  const float result = static_cast<float>(erfcDouble(static_cast<double>(x)));
  return x != x ? x : result;
}
IPUJAX_INLINE float erfInvFloat(float x) {
  const double d = static_cast<double>(x);
  const double left = (1.0 - d) * (1.0 + d);
  const double w = -logDouble(left);
  const double a = w - 3.0;
  const double small = polynomial(
      a, 1.6235420065140862, 0.24163040371224323, -0.005738135821919064, -0.0008361801684781023,
      0.00019506247074759834, -1.2718089836895973e-05, -1.748797064775375e-06,
      4.507559282503835e-07, -2.3434245541835097e-08, -5.65240251523086e-09, 1.0710089643730288e-09,
      -7.103012618459814e-12, -1.466021500255677e-11,
      1.0068362261698558e-12);  // 6.8e-11 for w < 6
  const double b = __builtin_sqrt(w) - 3.2;
  const double big = polynomial(
      b, 3.0336365742916116, 1.0046924428304171, 0.005973183040660535, -0.004294200629565471,
      0.0029505737194805083, -0.0019925986102866003, 0.0010800734447523066, -0.0003600060973601738,
      -1.6980162796936766e-05, 9.979845489946041e-05, -4.758195812698667e-05,
      1.1241703096989038e-06, 3.967554306460011e-06);  // 4.5e-11
  float result = static_cast<float>(d * (w < 5.95 ? small : big));
  result = absOf(x) == 1.0f ? withSign(kInfinity, x) : result;
  return (absOf(x) > 1.0f || x != x) ? kNan : result;
}
/// |x|^y for finite x != 0 and finite y; for negative x, negative if y is an odd integer, NaN if y
/// is not an integer. Other operands are left to the caller.
IPUJAX_INLINE float powFinite(float x, float y) {
  const double r = expDouble(static_cast<double>(y) * logDouble(absOf(static_cast<double>(x))));
  const double d = absOf(static_cast<double>(y));
  const double whole = roundDouble(d > 4503599627370496.0 ? 0.0 : d);
  const bool integer = whole == d || d > 4503599627370496.0;
  const bool odd = integer && (bitsOf(whole + 6755399441055744.0) & 1u) != 0;
  const float f = static_cast<float>(r);
  const float negative = integer ? (odd ? -f : f) : kNan;
  return x < 0.0f ? negative : f;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
