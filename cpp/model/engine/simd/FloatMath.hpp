#pragma once
#include <cstdint>
#include <limits>

#include "engine/simd/Isa.hpp"
#include "engine/simd/Registers.hpp"

/// Branch-free elementary functions that compilers vectorise: every choice is a select. Included
/// by *.simd.cpp only, so each instruction set has its own copy. Coefficients: our own weighted
/// least-squares (Lawson) fits; the error beside each is that of the fit, relative to the result.
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

/// x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, the first short enough that n times it is
/// exact. `n` is given as a float and as the low bits of `shifted`.
struct ExpSplit {
  float n, r, shifted;
};
IPUJAX_INLINE ExpSplit splitExp(float x) {
  const float shifted = madd(x, 1.44269504f, 12582912.0f);
  const float n = shifted - 12582912.0f;
  float r = madd(n, -0.693359375f, x);
  r = madd(n, 2.12194440e-4f, r);
  return {n, r, shifted};
}
/// 2^n for n in [-126, 127].
IPUJAX_INLINE float power2(const ExpSplit& x) { return floatOf((bitsOf(x.shifted) + 127u) << 23); }

/// Clamps x to [least, 89], where least < 0, by its bits, which takes two instructions; NaNs become
/// a bound.
IPUJAX_INLINE float clampForExp(float x, float least) {
  const auto bits = static_cast<std::int32_t>(bitsOf(x));
  const auto below = static_cast<std::uint32_t>(bits < 0x42b20000 ? bits : 0x42b20000);
  return floatOf(below < bitsOf(least) ? below : bitsOf(least));
}
/// exp(r) for r of splitExp.
IPUJAX_INLINE float expOfRest(float r) {
  const float q = polynomial(r, 0.5000000095694704f, 0.1666651830390876f, 0.04166620416601768f,
                             0.00836895370837175f, 0.0013950600302092924f);  // 3.2e-9
  return madd(r * r, q, r) + 1.0f;
}
/// exp(r) 2^n for n in [-152, 129]. Multiplies by 2^n in two steps, since results may be denormal:
/// the first one adds to the exponent of exp(r), which is about 1.
IPUJAX_INLINE float expOfSplit(const ExpSplit& split) {
  const float p = expOfRest(split.r);
  const std::uint32_t whole = bitsOf(split.shifted) - 0x4b400000u;
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) >> 1);
  return floatOf(bitsOf(p) + (half << 23)) * floatOf((whole - half + 127u) << 23);
}
IPUJAX_INLINE float expFloat(float x) {
  const float result = expOfSplit(splitExp(clampForExp(x, -105.0f)));
  return x == x ? result : x;
}
/// exp(x) for x in [-87, 88], with one scale factor.
IPUJAX_INLINE float expFloatInRange(float x) {
  const ExpSplit split = splitExp(x);
  return expOfRest(split.r) * power2(split);
}
/// exp(x) for x in [-700, 700], to the precision of floats in the range of doubles.
IPUJAX_INLINE double expFloatWide(float x) {
  const ExpSplit split = splitExp(x);
  const double power2 = doubleOf((std::uint64_t{bitsOf(split.shifted)} + 1023u) << 52);
  return static_cast<double>(expOfRest(split.r)) * power2;
}

IPUJAX_INLINE float expm1Float(float x) {
  const auto [n, r, shifted] = splitExp(clampForExp(x, -20.0f));
  const float q = polynomial(r, 0.5000000046760419f, 0.166666668132666f, 0.04166635329821689f,
                             0.008333273915835394f, 0.0013941116073774656f,
                             0.0001991370651087959f);  // 2.4e-10
  const float p = madd(r * r, q, r);
  const float half = floatOf((bitsOf(shifted) + 126u) << 23);
  const float result = 2.0f * madd(half, p, half - 0.5f);
  return !(absOf(x) >= 1e-8f) ? x : result;  // also if x is NaN
}

/// Exponent and mantissa in [sqrt(1/2), sqrt(2)) of a normal number.
struct LogSplit {
  float e, m;
};
IPUJAX_INLINE LogSplit splitLog(float x) {
  const std::uint32_t bits = bitsOf(x) + (0x3f800000u - 0x3f3504f3u);
  const auto e = static_cast<std::int32_t>(bits >> 23) - 127;
  return {static_cast<float>(e), floatOf((bits & 0x007fffffu) + 0x3f3504f3u)};
}
/// e ln 2 + log(1 + f), f in [-0.293, 0.4143].
IPUJAX_INLINE float logSum(float e, float f) {
  const float p = polynomial(f, 0.333333104384411f, -0.24999986625689521f, 0.2000222670358234f,
                             -0.16669249462805366f, 0.14218655431433436f, -0.12384370297519809f,
                             0.1187301626976792f, -0.11789695574601979f,
                             0.06915146947863479f);  // 7.3e-10
  const float z = f * f;
  float y = madd(f * z, p, e * -2.12194440e-4f);
  y = madd(z, -0.5f, y);
  return madd(e, 0.693359375f, f + y);
}

IPUJAX_INLINE float logFloat(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.0f : x;
  const auto [e, m] = splitLog(y);
  float result = logSum(tiny ? e - 23.0f : e, m - 1.0f);
  result = x == kInfinity ? x : result;
  result = x == 0.0f ? -kInfinity : result;
  return (x < 0.0f || x != x) ? kNan : result;
}

IPUJAX_INLINE float log1pFloat(float x) {
  const float u = 1.0f + x;
  const auto [e, m] = splitLog(u);
  const float scale =
      floatOf((127u << 23) - (static_cast<std::uint32_t>(static_cast<std::int32_t>(e))
                              << 23));  // 2^-e; used for small e only
  const float f = e > 25.0f ? m - 1.0f : madd(x, scale, scale - 1.0f);
  float result = logSum(e, f);
  result = x == kInfinity ? x : result;
  result = absOf(x) < 1e-8f ? x : result;
  result = x == -1.0f ? -kInfinity : result;
  return (x < -1.0f || x != x) ? kNan : result;
}

IPUJAX_INLINE float tanhFloat(float x) {
  const float a = absOf(x);
  const float t = a > 10.0f ? 20.0f : 2.0f * a;
  const ExpSplit split = splitExp(t);
  const float r = split.r;
  const float q = polynomial(r, 0.5000000046760419f, 0.166666668132666f, 0.04166635329821689f,
                             0.008333273915835394f, 0.0013941116073774656f, 0.0001991370651087959f);
  const float p = madd(r * r, q, r);
  const float s = power2(split);
  const float e = madd(s, p, s - 1.0f);
  float result = e / (e + 2.0f);
  result = a < 2e-4f ? a : result;
  result = withSign(result, x);
  return x != x ? x : result;
}

IPUJAX_INLINE float sigmoidFloat(float x) {
  const float e = expFloat(-absOf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

IPUJAX_INLINE float erfFloat(float x) {
  const float a = absOf(x);
  const float z = a * a;
  const float small =
      madd(a,
           polynomial(z, 0.12837916649727027f, -0.3761263229359311f, 0.11283672616803322f,
                      -0.02685810702398328f, 0.005197802258626353f, -0.0008106010529287992f,
                      8.215579290250636e-05f),
           a);  // 6.0e-10 up to 0.95
  const float b = a > 4.0f ? 4.0f : a;
  const float q = polynomial(b, -0.00016920532066844925f, 1.1294884074269858f, 0.6334008487040014f,
                             0.10822038657724778f, -0.02508061824138246f, 0.004156255624405751f,
                             -0.0004313937217827708f,
                             2.082863280645594e-05f);  // 6.0e-11 on [0.9, 4]
  const float large = 1.0f - expFloatInRange(-q);
  const float result = withSign(a < 0.93f ? small : large, x);
  return x != x ? x : result;
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
/// The normal distribution beyond a = min(|x|, 14.5), where it vanishes in float: exp(-a^2 / 2),
/// and the integral divided by that.
struct NormalTail {
  float a, exp, integral;
};
IPUJAX_INLINE NormalTail normalTail(float x) {
  const float magnitude = absOf(x);
  const float a = magnitude < 14.5f ? magnitude : 14.5f;
  // The square of a's high bits is exact, and the rest of a^2 is small enough for the polynomial.
  const float high = floatOf(bitsOf(a) & 0xfffff000u);
  ExpSplit split = splitExp(-0.5f * (high * high));
  split.r = madd(-0.5f * (a - high), a + high, split.r);
  // Erfc decays like 1 / a times the exponential, so the rest, which is the polynomial's, varies
  // little.
  const float t = 1.0f / (a + 4.0f);
  const float integral =
      t * polynomial((a - 4.0f) * t, 0.7552851438522339f, -0.6078965663909912f,
                     0.38713690638542175f, -0.18652348220348358f, 0.06040376424789429f,
                     -0.007525002583861351f, -0.0035120747052133083f, 0.0015695892507210374f,
                     0.0001783666230039671f, -0.0001324359909631312f);  // 8.7e-9
  return {a, expOfSplit(split), integral};
}
IPUJAX_INLINE float geluErfFloat(float x) {
  const auto [a, exp, integral] = normalTail(x);
  return (x < 0.0f ? -0.0f : x) - a * integral * exp;
}
/// (1 + tanh(u)) / 2 for GELU's cubic u, as a sigmoid, so that no precision is lost for negative u.
/// Beyond 87 it is 1 or 0: exponentials there are denormal, which CPUs compute far slower.
IPUJAX_INLINE float geluShare(float x) {
  const float u = 2.0f * (0.7978846f * (x + 0.044715f * (x * x * x)));
  const float below = -absOf(u);
  const float e = expFloatInRange(below < -87.0f ? -87.0f : below);
  const float share = (u < 0.0f ? e : 1.0f) / (1.0f + e);
  return u < -87.0f ? 0.0f : share;
}
IPUJAX_INLINE float geluFloat(float x) { return x * geluShare(x); }
IPUJAX_INLINE float geluGradientFloat(float x, float g) {
  const float s = geluShare(x);
  const float slope = 1.5957691f * (1.0f + 0.134145f * (x * x));
  return g * (s + x * (s * (1.0f - s)) * slope);
}
IPUJAX_INLINE float geluErfGradientFloat(float x, float g) {
  const auto [a, exp, integral] = normalTail(x);
  const float share = x < 0.0f ? integral * exp : 1.0f - integral * exp;
  const float slope = madd(withSign(a, x), 0.3989422804f * exp, share);
  return x != x ? x : g * slope;
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
