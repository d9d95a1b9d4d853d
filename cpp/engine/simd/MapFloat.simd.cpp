#include <cmath>

#include "engine/simd/MapLoops.hpp"

/// float: the loops of ElementwiseOps.def. All but lgamma, fmod and the rare operands of sin, cos,
/// tan and pow are vector loops.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kChunk = 128;

/// Vector code, then the C library for the operands it does not cover: |x| >= 2^27, NaN, and zero
/// for its sign. Those are looked for first: a loop that waits for one sine to compute the next is
/// as fast as the way from operand to result. Out may be the operand's memory.
template <class Fast, class Slow>
IPUJAX_INLINE void angleChunk(const float* x, float* o, std::int64_t n) {
  unsigned rare = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::uint32_t magnitude = bitsOf(x[k]) & 0x7fffffffu;
    rare |= static_cast<unsigned>(magnitude >= 0x4d000000u) | (magnitude == 0);
  }
  if (!rare) {
    IPUJAX_IVDEP
    for (std::int64_t k = 0; k < n; ++k) o[k] = Fast{}(x[k]);
    return;
  }
  float chunk[kChunk];
  for (std::int64_t k = 0; k < n; ++k) chunk[k] = Fast{}(x[k]);
  for (std::int64_t k = 0; k < n; ++k) {
    const float v = x[k];
    o[k] = !(absOf(v) < 134217728.0f) || v == 0.0f ? Slow{}(v) : chunk[k];
  }
}

template <class Fast, class Slow>
void angleLoop(Any a, Any, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const float*>(a);
  auto* o = static_cast<float*>(out);
  std::int64_t begin = 0;
  for (; begin + 16 <= n; begin += kChunk) {
    const std::int64_t m = n - begin < kChunk ? n - begin : kChunk;
    angleChunk<Fast, Slow>(x + begin, o + begin, m);
  }
  if (n - begin >= 8) {  // a length that is known needs no loop
    angleChunk<Fast, Slow>(x + begin, o + begin, 8);
    begin += 8;
  }
  if (begin < n) angleChunk<Fast, Slow>(x + begin, o + begin, n - begin);
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

template <class Fast, class Slow>
MapFn angles(Fast, Slow) {
  return angleLoop<Fast, Slow>;
}
MapFn powLoops(unsigned scalars) {
  return (scalars & 3u) == 1 ? powLoop<1> : (scalars & 3u) == 2 ? powLoop<2> : powLoop<0>;
}

float logGamma(float x) {
  int sign = 0;  // lgamma itself writes a global
  return ::lgammaf_r(x, &sign);
}

template <class T>
struct Select {
  IPUJAX_FN T operator()(T a, T b, std::uint8_t p) const { return p ? a : b; }
};
}  // namespace

MapFn findFloat(expr::Op op, unsigned scalars) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define F(...) IPUJAX_LOOP(float, __VA_ARGS__)
#define ANGLE(fast, slow) return angles(IPUJAX_LAMBDA(float, fast), IPUJAX_LAMBDA(float, slow));
#define LOOPS(choose) return choose(scalars);
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

/// Selection moves bits, so one loop for each element size does.
MapFn findSelect(unsigned bytes, unsigned s) {
  return withBytes(bytes, [&]<class T>(T) { return ternary<Select<T>, T, T, std::uint8_t, T>(s); });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
