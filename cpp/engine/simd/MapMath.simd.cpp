#include <cmath>

#include "engine/simd/MapLoops.hpp"

/// float: elementary functions. All but lgamma and the rare operands of sin, cos, tan and pow are
/// vector loops.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

#define IPUJAX_MATH(Name, function)                                                        \
  struct Name {                                                                            \
    __attribute__((always_inline)) float operator()(float x) const { return function(x); } \
  };
IPUJAX_MATH(Exp, expFloat)
IPUJAX_MATH(Expm1, expm1Float)
IPUJAX_MATH(Log, logFloat)
IPUJAX_MATH(Log1p, log1pFloat)
IPUJAX_MATH(Tanh, tanhFloat)
IPUJAX_MATH(Sigmoid, sigmoidFloat)
IPUJAX_MATH(Erf, erfFloat)
IPUJAX_MATH(Erfc, erfcFloat)
IPUJAX_MATH(ErfInv, erfInvFloat)
IPUJAX_MATH(GeluErf, geluErfFloat)
IPUJAX_MATH(Cbrt, cbrtFloat)
IPUJAX_MATH(Asin, asinFloat)
IPUJAX_MATH(Acos, acosFloat)
IPUJAX_MATH(Atan, atanFloat)
IPUJAX_MATH(Sinh, sinhFloat)
IPUJAX_MATH(Cosh, coshFloat)
IPUJAX_MATH(Asinh, asinhFloat)
IPUJAX_MATH(Acosh, acoshFloat)
IPUJAX_MATH(Atanh, atanhFloat)
#undef IPUJAX_MATH

struct Exp2 {
  __attribute__((always_inline)) float operator()(float x) const {
    const double y = static_cast<double>(x) * 0.6931471805599453;
    const float r = static_cast<float>(expDouble(y));
    return x != x ? x : r;
  }
};
struct Atan2 {
  __attribute__((always_inline)) float operator()(float y, float x) const {
    return atan2Float(y, x);
  }
};

/// C's fmod: the sign of the dividend, exact.
struct Remainder {
  float operator()(float a, float b) const { return std::fmod(a, b); }
};

struct Sin {
  __attribute__((always_inline)) float fast(float x) const { return sinShifted(x, 0); }
  static float slow(float x) { return std::sin(x); }
};
struct Cos {
  __attribute__((always_inline)) float fast(float x) const { return sinShifted(x, 1); }
  static float slow(float x) { return std::cos(x); }
};
struct Tan {
  __attribute__((always_inline)) float fast(float x) const { return tanFloat(x); }
  static float slow(float x) { return std::tan(x); }
};

constexpr std::int64_t kChunk = 128;

/// Vector code, then the C library for the operands it does not cover: |x| >= 2^27, NaN, and zero
/// for its sign. Those are looked for first: a loop that waits for one sine to compute the next is
/// as fast as the way from operand to result. Out may be the operand's memory.
template <class F>
IPUJAX_INLINE void angleChunk(const float* x, float* o, std::int64_t n) {
  unsigned rare = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::uint32_t magnitude = bitsOf(x[k]) & 0x7fffffffu;
    rare |= static_cast<unsigned>(magnitude >= 0x4d000000u) | (magnitude == 0);
  }
  if (!rare) {
    IPUJAX_IVDEP
    for (std::int64_t k = 0; k < n; ++k) o[k] = F{}.fast(x[k]);
    return;
  }
  float chunk[kChunk];
  for (std::int64_t k = 0; k < n; ++k) chunk[k] = F{}.fast(x[k]);
  for (std::int64_t k = 0; k < n; ++k) {
    const float v = x[k];
    o[k] = !(absOf(v) < 134217728.0f) || v == 0.0f ? F::slow(v) : chunk[k];
  }
}

template <class F>
void angleLoop(Any a, Any, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const float*>(a);
  auto* o = static_cast<float*>(out);
  std::int64_t begin = 0;
  for (; begin + 16 <= n; begin += kChunk) {
    const std::int64_t m = n - begin < kChunk ? n - begin : kChunk;
    angleChunk<F>(x + begin, o + begin, m);
  }
  if (n - begin >= 8) {  // a length that is known needs no loop
    angleChunk<F>(x + begin, o + begin, 8);
    begin += 8;
  }
  if (begin < n) angleChunk<F>(x + begin, o + begin, n - begin);
}

template <unsigned kScalars>
void powLoop(Any a, Any b, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const float*>(a);
  const auto* y = static_cast<const float*>(b);
  auto* o = static_cast<float*>(out);
  const float x0 = *x;
  const float y0 = *y;
  float chunk[kChunk];
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t m = n - begin < kChunk ? n - begin : kChunk;
    unsigned rare = 0;
    for (std::int64_t k = 0; k < m; ++k) {
      const float v = (kScalars & 1u) ? x0 : x[begin + k];
      const float w = (kScalars & 2u) ? y0 : y[begin + k];
      chunk[k] = powFinite(v, w);
      rare |= static_cast<unsigned>(v - v != 0.0f) | (w - w != 0.0f) | (v == 0.0f);
    }
    if (rare) {
      for (std::int64_t k = 0; k < m; ++k) {
        const float v = (kScalars & 1u) ? x0 : x[begin + k];
        const float w = (kScalars & 2u) ? y0 : y[begin + k];
        if (v - v != 0.0f || w - w != 0.0f || v == 0.0f) chunk[k] = std::pow(v, w);
      }
    }
    for (std::int64_t k = 0; k < m; ++k) o[begin + k] = chunk[k];
  }
}

void logGammaLoop(Any a, Any, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const float*>(a);
  auto* o = static_cast<float*>(out);
  for (std::int64_t k = 0; k < n; ++k) {
    int sign = 0;  // lgamma itself writes a global
    o[k] = ::lgammaf_r(x[k], &sign);
  }
}
}  // namespace

MapFn findMath(expr::Op op, unsigned scalars) {
  using expr::Op;
  switch (op) {
    case Op::kExp:
      return unary<Exp, float>();
    case Op::kExp2:
      return unary<Exp2, float>();
    case Op::kExpm1:
      return unary<Expm1, float>();
    case Op::kLog:
      return unary<Log, float>();
    case Op::kLog1p:
      return unary<Log1p, float>();
    case Op::kTanh:
      return unary<Tanh, float>();
    case Op::kSigmoid:
      return unary<Sigmoid, float>();
    case Op::kErf:
      return unary<Erf, float>();
    case Op::kErfc:
      return unary<Erfc, float>();
    case Op::kErfInv:
      return unary<ErfInv, float>();
    case Op::kGeluErf:
      return unary<GeluErf, float>();
    case Op::kCbrt:
      return unary<Cbrt, float>();
    case Op::kAsin:
      return unary<Asin, float>();
    case Op::kAcos:
      return unary<Acos, float>();
    case Op::kAtan:
      return unary<Atan, float>();
    case Op::kSinh:
      return unary<Sinh, float>();
    case Op::kCosh:
      return unary<Cosh, float>();
    case Op::kAsinh:
      return unary<Asinh, float>();
    case Op::kAcosh:
      return unary<Acosh, float>();
    case Op::kAtanh:
      return unary<Atanh, float>();
    case Op::kSin:
      return angleLoop<Sin>;
    case Op::kCos:
      return angleLoop<Cos>;
    case Op::kTan:
      return angleLoop<Tan>;
    case Op::kLogGamma:
      return logGammaLoop;
    case Op::kAtan2:
      return binary<Atan2, float>(scalars);
    case Op::kRemainder:
      return binary<Remainder, float>(scalars);
    case Op::kPower:
      return (scalars & 3u) == 1 ? powLoop<1> : (scalars & 3u) == 2 ? powLoop<2> : powLoop<0>;
    default:
      return nullptr;
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
