#include "engine/simd/Chain.hpp"

#include <array>
#include <cstring>

#include "engine/simd/HalfMath.hpp"
#include "engine/simd/Registers.hpp"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

#define IPUJAX_FN __attribute__((always_inline))

constexpr int kBytes = kRegisterBytes;
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

/// Links over strips of sizeof...(kIndex) vectors: functions that take the accumulator as
/// arguments, change it, and call the next link as the last thing they do. Eight vectors are passed
/// in registers, and compilers make such a call a jump, so that the accumulator never goes to
/// memory.
template <int... kIndex>
struct Strip {
  static constexpr std::int64_t kVectors = sizeof...(kIndex);
  static constexpr std::int64_t kElements = kVectors * kLanes;
  template <int>
  using Vector = Float;
  struct Code {
    void (*run)(const ChainLink*, std::byte* const* memory, std::int64_t at, std::byte* kept,
                const Code* codes, Vector<kIndex>...);
  };
  using Codes = std::array<Code, ChainLink::codeOf(Link::kEnd, Source::kKept) + 1>;

  /// Where a link's operands are.
  struct Places {
    std::uint8_t a, b;
    Source b_source;
    std::byte* const* memory;
    std::int64_t first;  ///< element of the strip
    std::byte* kept_strips;

    IPUJAX_FN std::byte* at(std::uint8_t number, int bytes, int i) const {
      return memory[number] + (first + i * kLanes) * bytes;
    }
    IPUJAX_FN std::byte* kept(std::uint8_t number, int i) const {
      return kept_strips + (number * kVectors + i) * kBytes;
    }
    template <Source kSource, class V>
    IPUJAX_FN V vector(std::uint8_t number, int i) const {
      if constexpr (kSource == Source::kKept) return load<V>(kept(number, i));
      if constexpr (kSource == Source::kMemory) return load<V>(at(number, 4, i));
      std::uint32_t bits;  // as integers: adding -0.0 to zeros would lose the sign
      __builtin_memcpy(&bits, memory[number], 4);
      return (V)(UInt{} + bits);
    }
    template <Source kSource>
    IPUJAX_FN Int mask(std::uint8_t number, int i) const {
      if constexpr (kSource == Source::kKept) return load<Int>(kept(number, i));
      if constexpr (kSource == Source::kMemory) return loadMask(at(number, 1, i));
      return Int{} - static_cast<std::int32_t>(*memory[number] != std::byte{0});
    }
    /// Selection has a second operand, whose source is no part of the code.
    IPUJAX_FN Float vectorOfB(int i) const {
      if (b_source == Source::kScalar) return vector<Source::kScalar, Float>(b, i);
      if (b_source == Source::kKept) return vector<Source::kKept, Float>(b, i);
      return vector<Source::kMemory, Float>(b, i);
    }
    IPUJAX_FN Int maskOfB(int i) const {
      if (b_source == Source::kScalar) return mask<Source::kScalar>(b, i);
      if (b_source == Source::kKept) return mask<Source::kKept>(b, i);
      return mask<Source::kMemory>(b, i);
    }
  };

  /// F: what a link does to vector i of the accumulator.
  template <class F>
  static void run(const ChainLink* link, std::byte* const* memory, std::int64_t at, std::byte* kept,
                  const Code* codes, Vector<kIndex>... v) {
    const Places places{link->a, link->b, link->b_source, memory, at, kept};
    (F{}(v, places, kIndex), ...);
    ++link;
    return codes[link->code].run(link, memory, at, kept, codes, v...);
  }
  static void end(const ChainLink*, std::byte* const*, std::int64_t, std::byte*, const Code*,
                  Vector<kIndex>...) {}

// PLACED: a statement on vector i of the accumulator, x, with places p. Others: expressions of x
// and the link's operand, y; or of x alone.
#define PLACED_FROM(Name, from, ...)                                               \
  codes[ChainLink::codeOf(Link::Name, Source::from)] = {                           \
      run<decltype([]([[maybe_unused]] Float& x, [[maybe_unused]] const Places& p, \
                      [[maybe_unused]] int i) IPUJAX_FN {                          \
        [[maybe_unused]] constexpr Source kSource = Source::from;                  \
        __VA_ARGS__;                                                               \
      })>};
#define PLACED(Name, ...) PLACED_FROM(Name, kMemory, __VA_ARGS__)
#define FROM_EACH(Name, ...)              \
  PLACED_FROM(Name, kMemory, __VA_ARGS__) \
  PLACED_FROM(Name, kScalar, __VA_ARGS__) \
  PLACED_FROM(Name, kKept, __VA_ARGS__)
#define UNARY(Name, expression) PLACED(Name, x = (Float)(expression))
#define BINARY(Name, V, expression) \
  FROM_EACH(                        \
      Name, x = (Float)[](V x, V y) \
                IPUJAX_FN { return expression; }((V)x, p.template vector<kSource, V>(p.a, i)))
#define MASK(Name, expression)          \
  FROM_EACH(                            \
      Name, x = (Float)[](Int x, Int y) \
                IPUJAX_FN { return expression; }((Int)x, p.template mask<kSource>(p.a, i)))
  // Long: a row for each link.
  static constexpr Codes codes() {
    Codes codes{};
    BINARY(kLoad, Float, ((void)x, y))
    MASK(kLoadBool, ((void)x, y))
    PLACED(kLoadHalf, x = loadHalf(p.at(p.a, 2, i)))
    PLACED(kStore, store(p.at(p.a, 4, i), x))
    PLACED(kStoreBool, storeMask(p.at(p.a, 1, i), (Int)x))
    PLACED(kStoreHalf, storeHalf(p.at(p.a, 2, i), x))
    PLACED_FROM(kKeep, kKept, store(p.kept(p.a, i), x))
    UNARY(kRoundToHalf, roundToHalf(x))
    UNARY(kRoundToBFloat16, roundToBFloat16(x))
    UNARY(kAbs, (Int)x & 0x7fffffff)
    UNARY(kNegate, -x)
    UNARY(kSquare, x * x)
    UNARY(kInverse, 1.0f / x)
    BINARY(kAdd, Float, x + y)
    BINARY(kSubtract, Float, x - y)
    BINARY(kSubtractFrom, Float, y - x)
    BINARY(kMultiply, Float, x * y)
    BINARY(kDivide, Float, x / y)
    BINARY(kDivideInto, Float, y / x)
    BINARY(kMaximum, Float, maximum(x, y))
    BINARY(kMinimum, Float, minimum(x, y))
    BINARY(kMaximumOfNumber, Float, y > x ? y : x)
    BINARY(kMinimumOfNumber, Float, y < x ? y : x)
    BINARY(kMaximumOfZero, Float, (y > x ? y : x) + 0.0f)  // -0 becomes +0
    BINARY(kEqual, Float, x == y)
    BINARY(kNotEqual, Float, x != y)
    BINARY(kLess, Float, x < y)
    BINARY(kLessEqual, Float, x <= y)
    BINARY(kGreater, Float, x > y)
    BINARY(kGreaterEqual, Float, x >= y)
    UNARY(kNegateInt, -(UInt)x)
    UNARY(kSquareInt, (UInt)x * (UInt)x)
    UNARY(kNotInt, ~(UInt)x)
    BINARY(kAddInt, UInt, x + y)
    BINARY(kSubtractInt, UInt, x - y)
    BINARY(kSubtractFromInt, UInt, y - x)
    BINARY(kMultiplyInt, UInt, x * y)
    BINARY(kAnd, UInt, x & y)
    BINARY(kOr, UInt, x | y)
    BINARY(kXor, UInt, x ^ y)
    BINARY(kShiftLeft, UInt, y < 32u ? x << (y & 31u) : UInt{})
    BINARY(kShiftRight, UInt, y < 32u ? x >> (y & 31u) : UInt{})
    BINARY(kShiftRightSign, Int, x >> ((UInt)y < 32u ? y : Int{} + 31))
    BINARY(kShiftLeftFew, UInt, x << y)
    BINARY(kShiftRightFew, UInt, x >> y)
    BINARY(kRotateLeft, UInt, rotateLeft(x, y))
    BINARY(kMaximumInt, Int, x > y ? x : y)
    BINARY(kMinimumInt, Int, x < y ? x : y)
    BINARY(kMaximumUInt, UInt, x > y ? x : y)
    BINARY(kMinimumUInt, UInt, x < y ? x : y)
    BINARY(kEqualInt, Int, x == y)
    BINARY(kNotEqualInt, Int, x != y)
    BINARY(kLessInt, Int, x < y)
    BINARY(kLessEqualInt, Int, x <= y)
    BINARY(kGreaterInt, Int, x > y)
    BINARY(kGreaterEqualInt, Int, x >= y)
    BINARY(kLessUInt, UInt, x < y)
    BINARY(kLessEqualUInt, UInt, x <= y)
    BINARY(kGreaterUInt, UInt, x > y)
    BINARY(kGreaterEqualUInt, UInt, x >= y)
    UNARY(kIntToFloat, __builtin_convertvector((Int)x, Float))
    UNARY(kUIntToFloat, __builtin_convertvector((UInt)x, Float))
    UNARY(kMaskToFloat, (Int)x & __builtin_bit_cast(std::int32_t, 1.0f))
    UNARY(kMaskToInt, (Int)x & 1)
    UNARY(kNotMask, ~(Int)x)
    MASK(kAndMask, x & y)
    MASK(kOrMask, x | y)
    MASK(kXorMask, x ^ y)
    FROM_EACH(kSelect, x = (Int)x ? p.template vector<kSource, Float>(p.a, i) : p.vectorOfB(i))
    FROM_EACH(kSelectTrue, x = p.maskOfB(i) ? x : p.template vector<kSource, Float>(p.a, i))
    FROM_EACH(kSelectFalse, x = p.maskOfB(i) ? p.template vector<kSource, Float>(p.a, i) : x)
    codes[ChainLink::codeOf(Link::kEnd, Source::kMemory)] = {end};
    return codes;
  }
#undef PLACED_FROM
#undef PLACED
#undef FROM_EACH
#undef UNARY
#undef BINARY
#undef MASK
};

template <class S>
constexpr auto kCodes = S::codes();

/// Whole strips of elements [at, n); returns where they end.
template <int... kIndex>
std::int64_t runStrips(Strip<kIndex...>, const ChainLink* links, std::byte* const* memory,
                       std::int64_t at, std::int64_t n) {
  using S = Strip<kIndex...>;
  alignas(kBytes) std::byte kept[kMostKept * S::kVectors * kBytes];
  const auto* codes = kCodes<S>.data();
  for (; at + S::kElements <= n; at += S::kElements)
    codes[links->code].run(links, memory, at, kept, codes, (static_cast<void>(kIndex), Float{})...);
  return at;
}
}  // namespace

std::int64_t chainLanes() { return kLanes; }

void runChain(const ChainLink* links, std::byte* const* memory, std::int64_t n) {
  std::int64_t at = runStrips(Strip<0, 1, 2, 3, 4, 5, 6, 7>{}, links, memory, 0, n);
  at = runStrips(Strip<0, 1, 2, 3>{}, links, memory, at, n);
  runStrips(Strip<0>{}, links, memory, at, n);
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
