#include "engine/simd/Chain.hpp"

#include <cstring>
#include <utility>

#include "engine/simd/HalfMath.hpp"
#include "engine/simd/Registers.hpp"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr int kBytes = kRegisterBytes;
// Vectors of a strip. More of them share the price of one dispatch, until they spill: AVX-512 has
// 32 registers, the others 16.
constexpr int kWide = kBytes == 64 ? 16 : 8;
constexpr int kLanes = kBytes / 4;
using Float = float __attribute__((vector_size(kBytes)));
using Int = std::int32_t __attribute__((vector_size(kBytes)));
using UInt = std::uint32_t __attribute__((vector_size(kBytes)));
using Byte = std::int8_t __attribute__((vector_size(kLanes)));

template <class V, class T>
IPUJAX_INLINE V load(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <class T, class V>
IPUJAX_INLINE void store(T* to, V v) {
  __builtin_memcpy(to, &v, sizeof v);
}

IPUJAX_INLINE Int loadMask(const std::byte* from) {
  return __builtin_convertvector(load<Byte>(from), Int) != 0;
}
IPUJAX_INLINE void storeMask(std::byte* to, Int mask) {
  store(to, __builtin_convertvector(mask & 1, Byte));
}

IPUJAX_INLINE Float loadHalf(const std::byte* from) {
#if defined(__AVX512F__)
  return (Float)_mm512_maskz_cvtph_ps(0xffff,
                                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__F16C__)
  return (Float)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  Float v;
  std::uint16_t bits[kLanes];
  std::memcpy(bits, from, sizeof bits);
  for (int i = 0; i < kLanes; ++i) v[i] = halfBitsToFloat(bits[i]);
  return v;
#endif
}
IPUJAX_INLINE void storeHalf(std::byte* to, Float v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  std::uint16_t bits[kLanes];
  for (int i = 0; i < kLanes; ++i) bits[i] = floatToHalfBits(v[i]);
  std::memcpy(to, bits, sizeof bits);
#endif
}
IPUJAX_INLINE Float roundToHalf(Float v) {
#if defined(__AVX512F__)
  return (Float)_mm512_maskz_cvtph_ps(
      0xffff, _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  return (Float)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < kLanes; ++i) v[i] = roundedToHalf(v[i]);
  return v;
#endif
}
IPUJAX_INLINE Float roundToBFloat16(Float v) {
  const UInt bits = (UInt)v;
  const UInt rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  const UInt nan = (bits & 0xffff0000u) | 0x00400000u;
  return (Float)(v != v ? nan : rounded);
}

IPUJAX_INLINE UInt rotateLeft(UInt x, UInt bits) {
#if defined(__AVX512F__)
  return (UInt)_mm512_maskz_rolv_epi32(0xffff, (__m512i)x, (__m512i)bits);
#else
  return (x << bits) | (x >> ((32u - bits) & 31u));
#endif
}

// Of equal operands only zeros differ: the larger is the one without a sign.
IPUJAX_INLINE Float maximum(Float a, Float b) {
  const Float zeros = (Float)((Int)a & (Int)b);
  return ((a != a) | (a > b)) ? a : (a == b ? zeros : b);
}
IPUJAX_INLINE Float minimum(Float a, Float b) {
  const Float zeros = (Float)((Int)a | (Int)b);
  return ((a != a) | (a < b)) ? a : (a == b ? zeros : b);
}

/// The accumulator: a strip of kVectors vectors, in registers since every index is a constant.
template <int kVectors>
struct Strip {
  Float v[kVectors];
};
template <class S, class F, int... kIndex>
IPUJAX_INLINE void each(S& strip, F f, std::integer_sequence<int, kIndex...>) {
  (f(strip.v[kIndex], kIndex), ...);
}
template <int kVectors, class F>
IPUJAX_INLINE void each(Strip<kVectors>& strip, F f) {
  each(strip, f, std::make_integer_sequence<int, kVectors>{});
}

/// The operand of a link, from wherever it lies, for elements `at` and on.
template <int kVectors>
struct Operand {
  const std::byte* memory;
  std::int64_t at;
  const Strip<kVectors>& kept;
};

/// strip <- f(vector of the strip, vector of the operand, index); V: 32-bit lanes.
template <Source kSource, class V, int kVectors, class F>
IPUJAX_INLINE void apply(Strip<kVectors>& strip, const Operand<kVectors>& operand, F f) {
  if constexpr (kSource == Source::kScalar) {
    std::uint32_t bits;  // as integers: adding -0.0 to zeros would lose the sign
    __builtin_memcpy(&bits, operand.memory, 4);
    const V y = (V)(UInt{} + bits);
    each(strip, [&](Float& x, int i) { x = (Float)f((V)x, y, i); });
  } else if constexpr (kSource == Source::kKept) {
    each(strip, [&](Float& x, int i) { x = (Float)f((V)x, (V)operand.kept.v[i], i); });
  } else {
    const std::byte* from = operand.memory + operand.at * 4;
    each(strip, [&](Float& x, int i) { x = (Float)f((V)x, load<V>(from + i * kBytes), i); });
  }
}
/// The same for masks.
template <Source kSource, int kVectors, class F>
IPUJAX_INLINE void applyMask(Strip<kVectors>& strip, const Operand<kVectors>& operand, F f) {
  if constexpr (kSource == Source::kScalar) {
    const Int y = Int{} - static_cast<std::int32_t>(*operand.memory != std::byte{0});
    each(strip, [&](Float& x, int) { x = (Float)f((Int)x, y); });
  } else if constexpr (kSource == Source::kKept) {
    each(strip, [&](Float& x, int i) { x = (Float)f((Int)x, (Int)operand.kept.v[i]); });
  } else {
    const std::byte* from = operand.memory + operand.at;
    each(strip, [&](Float& x, int i) { x = (Float)f((Int)x, loadMask(from + i * kLanes)); });
  }
}

/// Selection has a second operand, whose source is not part of the case: found here.
template <class F>
IPUJAX_INLINE void withSource(Source source, F f) {
  if (source == Source::kScalar)
    f(std::integral_constant<Source, Source::kScalar>{});
  else if (source == Source::kKept)
    f(std::integral_constant<Source, Source::kKept>{});
  else
    f(std::integral_constant<Source, Source::kMemory>{});
}

/// acc is the mask: acc ? a : b.
template <Source kSource, int kVectors>
IPUJAX_INLINE void select(Strip<kVectors>& acc, const Operand<kVectors>& a, Source b_source,
                          const Operand<kVectors>& b) {
  const Strip<kVectors> mask = acc;
  apply<kSource, Float>(acc, a, [](Float, Float y, int) { return y; });
  withSource(b_source, [&](auto source) {
    apply<source(), Float>(acc, b, [&](Float x, Float y, int i) { return (Int)mask.v[i] ? x : y; });
  });
}
/// b is the mask: acc stays where it is kWhen, else a.
template <Source kSource, bool kWhen, int kVectors>
IPUJAX_INLINE void selectByMask(Strip<kVectors>& acc, const Operand<kVectors>& a, Source b_source,
                                const Operand<kVectors>& b) {
  Strip<kVectors> mask = acc;
  withSource(b_source,
             [&](auto source) { applyMask<source()>(mask, b, [](Int, Int y) { return y; }); });
  apply<kSource, Float>(acc, a, [&](Float x, Float y, int i) {
    const Int m = (Int)mask.v[i];
    return kWhen ? (m ? x : y) : (m ? y : x);
  });
}

constexpr int caseOf(Link link, Source source) {
  return static_cast<int>(link) * 3 + static_cast<int>(source);
}

/// One strip of elements, beginning with element `at`.
// Long: one switch over all links keeps the accumulators in registers.
template <int kVectors>
IPUJAX_INLINE void runStrip(const ChainLink* links, std::size_t count, std::byte* const* memory,
                            std::int64_t at) {
  Strip<kVectors> acc;
  Strip<kVectors> kept;
  each(acc, [](Float& x, int) { x = Float{}; });
  each(kept, [](Float& x, int) { x = Float{}; });
#define IPUJAX_CASES(Name, statement)           \
  case caseOf(Link::Name, Source::kMemory): {   \
    constexpr Source kSource = Source::kMemory; \
    statement;                                  \
    break;                                      \
  }                                             \
  case caseOf(Link::Name, Source::kScalar): {   \
    constexpr Source kSource = Source::kScalar; \
    statement;                                  \
    break;                                      \
  }                                             \
  case caseOf(Link::Name, Source::kKept): {     \
    constexpr Source kSource = Source::kKept;   \
    statement;                                  \
    break;                                      \
  }
#define IPUJAX_BINARY(Name, V, expression) \
  IPUJAX_CASES(Name, (apply<kSource, V>(acc, a, [](V x, V y, int) { return expression; })))
#define IPUJAX_MASK(Name, expression) \
  IPUJAX_CASES(Name, (applyMask<kSource>(acc, a, [](Int x, Int y) { return expression; })))
#define IPUJAX_STRIP(Name, statement)                                \
  case caseOf(Link::Name, Source::kMemory):                          \
    each(acc, [&](Float& x, [[maybe_unused]] int i) { statement; }); \
    break;
#define IPUJAX_UNARY(Name, expression) IPUJAX_STRIP(Name, x = (Float)(expression))
  for (std::size_t k = 0; k < count; ++k) {
    const ChainLink& l = links[k];
    std::byte* const to = memory[l.a.memory];
    const Operand<kVectors> a{to, at, kept};
    const Operand<kVectors> b{memory[l.b.memory], at, kept};
    switch (caseOf(l.link, l.a.source)) {
      IPUJAX_BINARY(kLoad, Float, ((void)x, y))
      IPUJAX_MASK(kLoadBool, ((void)x, y))
      IPUJAX_STRIP(kLoadHalf, x = loadHalf(to + (at + i * kLanes) * 2))
      IPUJAX_STRIP(kStore, store(to + at * 4 + i * kBytes, x))
      IPUJAX_STRIP(kStoreBool, storeMask(to + at + i * kLanes, (Int)x))
      IPUJAX_STRIP(kStoreHalf, storeHalf(to + (at + i * kLanes) * 2, x))
      IPUJAX_STRIP(kKeep, kept.v[i] = x)
      IPUJAX_STRIP(kSwap, std::swap(x, kept.v[i]))
      IPUJAX_UNARY(kRoundToHalf, roundToHalf(x))
      IPUJAX_UNARY(kRoundToBFloat16, roundToBFloat16(x))
      IPUJAX_UNARY(kAbs, (Int)x & 0x7fffffff)
      IPUJAX_UNARY(kNegate, -x)
      IPUJAX_UNARY(kSquare, x * x)
      IPUJAX_UNARY(kInverse, 1.0f / x)
      IPUJAX_BINARY(kAdd, Float, x + y)
      IPUJAX_BINARY(kSubtract, Float, x - y)
      IPUJAX_BINARY(kSubtractFrom, Float, y - x)
      IPUJAX_BINARY(kMultiply, Float, x * y)
      IPUJAX_BINARY(kDivide, Float, x / y)
      IPUJAX_BINARY(kDivideInto, Float, y / x)
      IPUJAX_BINARY(kMaximum, Float, maximum(x, y))
      IPUJAX_BINARY(kMinimum, Float, minimum(x, y))
      IPUJAX_BINARY(kMaximumOfNumber, Float, y > x ? y : x)
      IPUJAX_BINARY(kMinimumOfNumber, Float, y < x ? y : x)
      IPUJAX_BINARY(kMaximumOfZero, Float, (y > x ? y : x) + 0.0f)  // -0 becomes +0
      IPUJAX_BINARY(kEqual, Float, x == y)
      IPUJAX_BINARY(kNotEqual, Float, x != y)
      IPUJAX_BINARY(kLess, Float, x < y)
      IPUJAX_BINARY(kLessEqual, Float, x <= y)
      IPUJAX_BINARY(kGreater, Float, x > y)
      IPUJAX_BINARY(kGreaterEqual, Float, x >= y)
      IPUJAX_UNARY(kNegateInt, -(UInt)x)
      IPUJAX_UNARY(kSquareInt, (UInt)x * (UInt)x)
      IPUJAX_UNARY(kNotInt, ~(UInt)x)
      IPUJAX_BINARY(kAddInt, UInt, x + y)
      IPUJAX_BINARY(kSubtractInt, UInt, x - y)
      IPUJAX_BINARY(kSubtractFromInt, UInt, y - x)
      IPUJAX_BINARY(kMultiplyInt, UInt, x * y)
      IPUJAX_BINARY(kAnd, UInt, x & y)
      IPUJAX_BINARY(kOr, UInt, x | y)
      IPUJAX_BINARY(kXor, UInt, x ^ y)
      IPUJAX_BINARY(kShiftLeft, UInt, y < 32u ? x << (y & 31u) : UInt{})
      IPUJAX_BINARY(kShiftRight, UInt, y < 32u ? x >> (y & 31u) : UInt{})
      IPUJAX_BINARY(kShiftRightSign, Int, x >> ((UInt)y < 32u ? y : Int{} + 31))
      IPUJAX_BINARY(kShiftLeftFew, UInt, x << y)
      IPUJAX_BINARY(kShiftRightFew, UInt, x >> y)
      IPUJAX_BINARY(kRotateLeft, UInt, rotateLeft(x, y))
      IPUJAX_BINARY(kMaximumInt, Int, x > y ? x : y)
      IPUJAX_BINARY(kMinimumInt, Int, x < y ? x : y)
      IPUJAX_BINARY(kMaximumUInt, UInt, x > y ? x : y)
      IPUJAX_BINARY(kMinimumUInt, UInt, x < y ? x : y)
      IPUJAX_BINARY(kEqualInt, Int, x == y)
      IPUJAX_BINARY(kNotEqualInt, Int, x != y)
      IPUJAX_BINARY(kLessInt, Int, x < y)
      IPUJAX_BINARY(kLessEqualInt, Int, x <= y)
      IPUJAX_BINARY(kGreaterInt, Int, x > y)
      IPUJAX_BINARY(kGreaterEqualInt, Int, x >= y)
      IPUJAX_BINARY(kLessUInt, UInt, x < y)
      IPUJAX_BINARY(kLessEqualUInt, UInt, x <= y)
      IPUJAX_BINARY(kGreaterUInt, UInt, x > y)
      IPUJAX_BINARY(kGreaterEqualUInt, UInt, x >= y)
      IPUJAX_UNARY(kIntToFloat, __builtin_convertvector((Int)x, Float))
      IPUJAX_UNARY(kUIntToFloat, __builtin_convertvector((UInt)x, Float))
      IPUJAX_UNARY(kMaskToFloat, (Int)x & __builtin_bit_cast(std::int32_t, 1.0f))
      IPUJAX_UNARY(kMaskToInt, (Int)x & 1)
      IPUJAX_UNARY(kNotMask, ~(Int)x)
      IPUJAX_MASK(kAndMask, x & y)
      IPUJAX_MASK(kOrMask, x | y)
      IPUJAX_MASK(kXorMask, x ^ y)
      IPUJAX_CASES(kSelect, (select<kSource>(acc, a, l.b.source, b)))
      IPUJAX_CASES(kSelectTrue, (selectByMask<kSource, true>(acc, a, l.b.source, b)))
      IPUJAX_CASES(kSelectFalse, (selectByMask<kSource, false>(acc, a, l.b.source, b)))
    }
  }
#undef IPUJAX_UNARY
#undef IPUJAX_STRIP
#undef IPUJAX_CASES
#undef IPUJAX_BINARY
#undef IPUJAX_MASK
}
}  // namespace

std::int64_t chainLanes() { return kLanes; }

void runChain(const ChainLink* links, std::size_t count, std::byte* const* memory, std::int64_t n) {
  std::int64_t at = 0;
  for (; at + kWide * kLanes <= n; at += kWide * kLanes) runStrip<kWide>(links, count, memory, at);
  for (; at + 4 * kLanes <= n; at += 4 * kLanes) runStrip<4>(links, count, memory, at);
  for (; at < n; at += kLanes) runStrip<1>(links, count, memory, at);
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
