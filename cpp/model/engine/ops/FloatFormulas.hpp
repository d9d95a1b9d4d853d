#pragma once
#include <cstdint>
#include <limits>

/// Elementary functions of floats in terms of basic operations, so that vector loops
/// (engine/simd/FloatMath.hpp) and generated code (engine/expr/StripOps.cpp) have the same text and
/// the same bits. Branch-free: every choice is a select. Coefficients: our own weighted
/// least-squares (Lawson) fits; the error beside each is that of the fit, relative to the result.
namespace ipujax::engine {

/// `Math` has the types F (a float) and U (its bits), with arithmetic, comparisons and bitwise
/// operators as in C++, and:
///   madd(a, b, c)      a * b + c; rounded once if the CPU can
///   bits(F), of(U)     the bits of a float, and back
///   choose(truth, a, b)    a if true, else b
///   isNan(F)
///   least(U, U), leastSigned(U, U)    the smaller integer
///   shiftSigned(U, n)  shifts in the sign
///   toFloat(U)         the value of a signed integer
template <class Math>
struct FloatFormulas {
  using F = typename Math::F;
  using U = typename Math::U;
#define FORMULA [[gnu::always_inline]] static inline

  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

  FORMULA F abs(F x) { return Math::of(Math::bits(x) & 0x7fffffffu); }
  FORMULA F withSign(F magnitude, F sign) {
    return Math::of(Math::bits(magnitude) | (Math::bits(sign) & 0x80000000u));
  }

  /// c0 + c1 x + c2 x^2 ...
  template <class... Rest>
  FORMULA F polynomial(F x, float c0, Rest... rest) {
    if constexpr (sizeof...(rest) == 0)
      return F(c0);
    else
      return Math::madd(polynomial(x, rest...), x, c0);
  }

  /// x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, the first short enough that n times it is
  /// exact. `n` is given as a float and as the low bits of `shifted`.
  struct ExpSplit {
    F n, r, shifted;
  };
  FORMULA ExpSplit splitExp(F x) {
    const F shifted = Math::madd(x, 1.44269504f, 12582912.0f);
    const F n = shifted - 12582912.0f;
    F r = Math::madd(n, -0.693359375f, x);
    r = Math::madd(n, 2.12194440e-4f, r);
    return {n, r, shifted};
  }
  /// 2^n for n in [-126, 127].
  FORMULA F power2(const ExpSplit& x) { return Math::of((Math::bits(x.shifted) + 127u) << 23); }

  /// Clamps x to [lowest, 89], where lowest < 0, by its bits, which takes two instructions; NaNs
  /// become a bound.
  FORMULA F clampForExp(F x, float lowest) {
    const U below = Math::leastSigned(Math::bits(x), 0x42b20000u);
    return Math::of(Math::least(below, __builtin_bit_cast(std::uint32_t, lowest)));
  }
  /// exp(r) for r of splitExp.
  FORMULA F expOfRest(F r) {
    const F q = polynomial(r, 0.5000000095694704f, 0.1666651830390876f, 0.04166620416601768f,
                           0.00836895370837175f, 0.0013950600302092924f);  // 3.2e-9
    return Math::madd(r * r, q, r) + 1.0f;
  }
  /// exp(r) 2^n for n in [-152, 129]. Multiplies by 2^n in two steps, since results may be
  /// denormal: the first one adds to the exponent of exp(r), which is about 1.
  FORMULA F expOfSplit(const ExpSplit& split) {
    const F p = expOfRest(split.r);
    const U whole = Math::bits(split.shifted) - 0x4b400000u;
    const U half = Math::shiftSigned(whole, 1);
    return Math::of(Math::bits(p) + (half << 23)) * Math::of((whole - half + 127u) << 23);
  }
  FORMULA F exp(F x) {
    const F result = expOfSplit(splitExp(clampForExp(x, -105.0f)));
    return Math::choose(Math::isNan(x), x, result);
  }
  /// exp(x) for x in [-87, 88], with one scale factor.
  FORMULA F expInRange(F x) {
    const ExpSplit split = splitExp(x);
    return expOfRest(split.r) * power2(split);
  }

  /// exp(r) - 1.
  FORMULA F expm1OfRest(F r) {
    const F q = polynomial(r, 0.5000000046760419f, 0.166666668132666f, 0.04166635329821689f,
                           0.008333273915835394f, 0.0013941116073774656f,
                           0.0001991370651087959f);  // 2.4e-10
    return Math::madd(r * r, q, r);
  }
  FORMULA F expm1(F x) {
    const ExpSplit split = splitExp(clampForExp(x, -20.0f));
    const F p = expm1OfRest(split.r);
    const F half = Math::of((Math::bits(split.shifted) + 126u) << 23);
    const F result = F(2.0f) * Math::madd(half, p, half - 0.5f);
    return Math::choose(F(1e-8f) <= abs(x), result, x);  // also if x is NaN
  }

  /// Exponent and mantissa in [sqrt(1/2), sqrt(2)) of a normal number.
  struct LogSplit {
    U exponent;
    F e, m;
  };
  FORMULA LogSplit splitLog(F x) {
    const U bits = Math::bits(x) + (0x3f800000u - 0x3f3504f3u);
    const U exponent = (bits >> 23) - 127u;
    return {exponent, Math::toFloat(exponent), Math::of((bits & 0x007fffffu) + 0x3f3504f3u)};
  }
  /// e ln 2 + log(1 + f), f in [-0.293, 0.4143].
  FORMULA F logSum(F e, F f) {
    const F p = polynomial(f, 0.333333104384411f, -0.24999986625689521f, 0.2000222670358234f,
                           -0.16669249462805366f, 0.14218655431433436f, -0.12384370297519809f,
                           0.1187301626976792f, -0.11789695574601979f,
                           0.06915146947863479f);  // 7.3e-10
    const F z = f * f;
    F y = Math::madd(f * z, p, e * -2.12194440e-4f);
    y = Math::madd(z, -0.5f, y);
    return Math::madd(e, 0.693359375f, f + y);
  }
  FORMULA F log(F x) {
    const auto tiny = x < F(1.17549435e-38f);
    const LogSplit split = splitLog(Math::choose(tiny, x * 8388608.0f, x));
    const F e = Math::choose(tiny, split.e - 23.0f, split.e);
    F result = logSum(e, split.m - 1.0f);
    result = Math::choose(x == F(kInfinity), x, result);
    result = Math::choose(x == F(0.0f), F(-kInfinity), result);
    return Math::choose(F(0.0f) <= x, result, F(kNan));
  }
  FORMULA F log1p(F x) {
    const LogSplit split = splitLog(F(1.0f) + x);
    // 2^-e; used for small e only
    const F scale = Math::of(U(127u << 23) - (split.exponent << 23));
    const F f =
        Math::choose(F(25.0f) < split.e, split.m - 1.0f, Math::madd(x, scale, scale - 1.0f));
    F result = logSum(split.e, f);
    result = Math::choose(x == F(kInfinity), x, result);
    result = Math::choose(abs(x) < F(1e-8f), x, result);
    result = Math::choose(x == F(-1.0f), F(-kInfinity), result);
    return Math::choose(F(-1.0f) <= x, result, F(kNan));
  }

  FORMULA F tanh(F x) {
    const F a = abs(x);
    const ExpSplit split = splitExp(Math::choose(F(10.0f) < a, F(20.0f), F(2.0f) * a));
    const F s = power2(split);
    const F e = Math::madd(s, expm1OfRest(split.r), s - 1.0f);
    F result = e / (e + 2.0f);
    result = Math::choose(a < F(2e-4f), a, result);
    return Math::choose(Math::isNan(x), x, withSign(result, x));
  }

  FORMULA F sigmoid(F x) {
    const F e = exp(-abs(x));
    return Math::choose(x < F(0.0f), e, F(1.0f)) / (F(1.0f) + e);
  }

  FORMULA F erf(F x) {
    const F a = abs(x);
    const F z = a * a;
    const F small =
        Math::madd(a,
                   polynomial(z, 0.12837916649727027f, -0.3761263229359311f, 0.11283672616803322f,
                              -0.02685810702398328f, 0.005197802258626353f, -0.0008106010529287992f,
                              8.215579290250636e-05f),
                   a);  // 6.0e-10 up to 0.95
    const F b = Math::choose(F(4.0f) < a, F(4.0f), a);
    const F q = polynomial(b, -0.00016920532066844925f, 1.1294884074269858f, 0.6334008487040014f,
                           0.10822038657724778f, -0.02508061824138246f, 0.004156255624405751f,
                           -0.0004313937217827708f, 2.082863280645594e-05f);  // 6.0e-11 on [0.9, 4]
    const F large = F(1.0f) - expInRange(-q);
    const F result = withSign(Math::choose(a < F(0.93f), small, large), x);
    return Math::choose(Math::isNan(x), x, result);
  }

  /// The normal distribution beyond a = min(|x|, 14.5), where it vanishes in float: exp(-a^2 / 2),
  /// and the integral divided by that.
  struct NormalTail {
    F a, exp, integral;
  };
  FORMULA NormalTail normalTail(F x) {
    const F magnitude = abs(x);
    const F a = Math::choose(magnitude < F(14.5f), magnitude, F(14.5f));
    // The square of a's high bits is exact, and the rest of a^2 is small enough for the polynomial.
    const F high = Math::of(Math::bits(a) & 0xfffff000u);
    ExpSplit split = splitExp(F(-0.5f) * (high * high));
    split.r = Math::madd(F(-0.5f) * (a - high), a + high, split.r);
    // Erfc decays like 1 / a times the exponential, so the rest, which is the polynomial's, varies
    // little.
    const F t = F(1.0f) / (a + 4.0f);
    const F p = polynomial((a - 4.0f) * t, 0.7552851438522339f, -0.6078965663909912f,
                           0.38713690638542175f, -0.18652348220348358f, 0.06040376424789429f,
                           -0.007525002583861351f, -0.0035120747052133083f, 0.0015695892507210374f,
                           0.0001783666230039671f, -0.0001324359909631312f);  // 8.7e-9
    return {a, expOfSplit(split), t * p};
  }
  FORMULA F geluErf(F x) {
    const NormalTail tail = normalTail(x);
    return Math::choose(x < F(0.0f), F(-0.0f), x) - tail.a * tail.integral * tail.exp;
  }
  FORMULA F geluErfGradient(F x, F g) {
    const NormalTail tail = normalTail(x);
    const F beyond = tail.integral * tail.exp;
    const F share = Math::choose(x < F(0.0f), beyond, F(1.0f) - beyond);
    const F slope = Math::madd(withSign(tail.a, x), F(0.3989422804f) * tail.exp, share);
    return Math::choose(Math::isNan(x), x, g * slope);
  }

  /// (1 + tanh(u)) / 2 for GELU's cubic u, as a sigmoid, so that no precision is lost for negative
  /// u. Beyond 87 it is 1 or 0: exponentials there are denormal, which CPUs compute far slower.
  FORMULA F geluShare(F x) {
    const F u = F(2.0f) * (F(0.7978846f) * (x + F(0.044715f) * (x * x * x)));
    const F below = -abs(u);
    const F e = expInRange(Math::choose(below < F(-87.0f), F(-87.0f), below));
    const F share = Math::choose(u < F(0.0f), e, F(1.0f)) / (F(1.0f) + e);
    return Math::choose(u < F(-87.0f), F(0.0f), share);
  }
  FORMULA F gelu(F x) { return x * geluShare(x); }
  FORMULA F geluGradient(F x, F g) {
    const F s = geluShare(x);
    const F slope = F(1.5957691f) * (F(1.0f) + F(0.134145f) * (x * x));
    return g * (s + x * (s * (F(1.0f) - s)) * slope);
  }
#undef FORMULA
};

}  // namespace ipujax::engine
