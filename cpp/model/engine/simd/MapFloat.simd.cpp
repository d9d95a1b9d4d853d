#include <algorithm>
#include <cmath>

#include "engine/simd/MapLoops.hpp"

/// float: the loops of ElementwiseOps.def. All but lgamma and the rare operands of sin, cos, tan,
/// pow and remainders are vector loops.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kChunk = 128;

/// Vector code, then the C library for the operands it does not cover: |x| >= 2^27, NaN, and zero
/// for its sign. Looks for those first, which keeps the path from operand to result short for
/// programs that need one sine to compute the next. Out may be the operand's memory.
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
  if (n - begin >= 8) {  // a known length needs no loop
    angleChunk<Fast, Slow>(x + begin, o + begin, 8);
    begin += 8;
  }
  if (begin < n) angleChunk<Fast, Slow>(x + begin, o + begin, n - begin);
}

struct Power {
  static IPUJAX_FN float fast(float x, float y) { return powFinite(x, y); }
  static IPUJAX_FN bool isRare(float x, float y) {
    return (x - x != 0.0f) | (y - y != 0.0f) | (x == 0.0f);
  }
  static float slow(float x, float y) { return std::pow(x, y); }
};

/// By the quotient. A double gives its whole part exactly if that is below 2^28: a quotient is at
/// least 2^-24 below the next whole number, and its whole part times y has 52 bits.
struct Remainder {
  static IPUJAX_FN float fast(float x, float y) {
    const double q = static_cast<double>(x) / static_cast<double>(y);
    const double few = absOf(q) < 0x1p28 ? q : 0.0;
    const auto whole = static_cast<double>(static_cast<std::int32_t>(few));
    const double rest = static_cast<double>(x) - whole * static_cast<double>(y);
    return withSign(absOf(static_cast<float>(rest)), x);
  }
  static IPUJAX_FN bool isRare(float x, float y) {
    return !((absOf(x) * 0x1p-27f < absOf(y)) & (absOf(y) < kInfinity));
  }
  static float slow(float x, float y) { return std::fmod(x, y); }
};

/// Vector code, then the C library for the operands it does not cover. A scalar operand is copied
/// to all elements first: compilers would otherwise make a loop for each property of it.
template <class F, unsigned kScalars>
void rareLoop(Any a, Any b, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const float*>(a);
  const auto* y = static_cast<const float*>(b);
  auto* o = static_cast<float*>(out);
  float v[kChunk], w[kChunk], chunk[kChunk];
  if (kScalars & 1u) std::fill_n(v, n < kChunk ? n : kChunk, *x);
  if (kScalars & 2u) std::fill_n(w, n < kChunk ? n : kChunk, *y);
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t m = n - begin < kChunk ? n - begin : kChunk;
    if (!(kScalars & 1u)) std::copy_n(x + begin, m, v);
    if (!(kScalars & 2u)) std::copy_n(y + begin, m, w);
    unsigned rare = 0;
    for (std::int64_t k = 0; k < m; ++k) rare |= static_cast<unsigned>(F::isRare(v[k], w[k]));
    for (std::int64_t k = 0; k < m; ++k) chunk[k] = F::fast(v[k], w[k]);
    if (rare) {
      for (std::int64_t k = 0; k < m; ++k)
        if (F::isRare(v[k], w[k])) chunk[k] = F::slow(v[k], w[k]);
    }
    std::copy_n(chunk, m, o + begin);
  }
}

template <class Fast, class Slow>
MapFn angles(Fast, Slow) {
  return angleLoop<Fast, Slow>;
}
template <class F>
MapFn rareLoops(unsigned scalars) {
  return (scalars & 3u) == 1   ? rareLoop<F, 1>
         : (scalars & 3u) == 2 ? rareLoop<F, 2>
                               : rareLoop<F, 0>;
}

MapFn powLoops(unsigned scalars) { return rareLoops<Power>(scalars); }
MapFn remainderLoops(unsigned scalars) { return rareLoops<Remainder>(scalars); }

}  // namespace

MapFn findFloat(expr::Op op, unsigned scalars) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define F(...) IPUJAX_LOOP(float, __VA_ARGS__)
#define ANGLE(fast, slow) return angles(IPUJAX_LAMBDA(float, fast), IPUJAX_LAMBDA(float, slow));
#define LOOPS(choose) return choose(scalars);
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

/// Selection moves bits, so one loop for each element size is enough.
MapFn findSelect(unsigned bytes, unsigned s) {
  return withBytes(bytes, [&]<class T>(T) { return ternary<Select<T>, T, T, std::uint8_t, T>(s); });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
