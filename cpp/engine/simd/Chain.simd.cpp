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
static_assert(8 * kBytes <= kKeptBytes);
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

/// Where a link's operands are, for one strip.
struct Operands {
  const std::byte *a, *b;
  Source b_source;

  template <Source kSource, class V>
  static IPUJAX_FN V vector(const std::byte* from, int i) {
    if constexpr (kSource == Source::kMemory) return load<V>(from + i * kBytes);
    std::uint32_t bits;  // as integers: adding -0.0 to zeros would lose the sign
    __builtin_memcpy(&bits, from, 4);
    return (V)(UInt{} + bits);
  }
  template <Source kSource>
  static IPUJAX_FN Int mask(const std::byte* from, int i) {
    if constexpr (kSource == Source::kKeptMask) return load<Int>(from + i * kBytes);
    if constexpr (kSource == Source::kMemory) return loadMask(from + i * kLanes);
    return Int{} - static_cast<std::int32_t>(*from != std::byte{0});
  }
  // The second operand's source is not part of the code.
  IPUJAX_FN Float vectorOfB(int i) const {
    return b_source == Source::kScalar ? vector<Source::kScalar, Float>(b, i)
                                       : vector<Source::kMemory, Float>(b, i);
  }
  IPUJAX_FN Int maskOfB(int i) const {
    if (b_source == Source::kScalar) return mask<Source::kScalar>(b, i);
    if (b_source == Source::kKeptMask) return mask<Source::kKeptMask>(b, i);
    return mask<Source::kMemory>(b, i);
  }
};

/// Links over strips of sizeof...(kIndex) vectors: functions that take the accumulator as
/// arguments, change it, and call the next link as the last thing they do. Eight vectors are passed
/// in registers, and optimizing compilers make such a call a jump, so that the accumulator never
/// goes to memory. Others nest the calls, as deep as a chain is long.
template <int... kIndex>
struct Strip {
  static constexpr std::int64_t kElements = sizeof...(kIndex) * kLanes;
  template <int>
  using Vector = Float;
  struct Code {
    void (*run)(const ChainLink*, std::byte* const* memory, const Code* codes, Vector<kIndex>...);
  };

  /// F: what the link does to vector i of the accumulator. Form 1 stores, 2 loads, 3 does both;
  /// kTested is whatever the link says, for narrow strips, which need not be as fast.
  static constexpr int kTested = 4;
  template <class F, int kForm>
  static void run(const ChainLink* link, std::byte* const* memory, const Code* codes,
                  Vector<kIndex>... v) {
    const Operands operands{memory[link->a], memory[link->b], link->b_source};
    const std::byte* from = memory[link->from];
    std::byte* to = memory[link->to];
    const ChainLink* next = link + 1;
    const Code code = codes[next->code];
    const bool loads = kForm == kTested ? link->loads() : (kForm & 2) != 0;
    const bool stores = kForm == kTested ? link->stores() : (kForm & 1) != 0;
    if (loads) ((v = load<Float>(from + kIndex * kBytes)), ...);
    (F{}(v, operands, kIndex), ...);
    if (stores) (store(to + kIndex * kBytes, v), ...);
    return code.run(next, memory, codes, v...);
  }
  static void end(const ChainLink*, std::byte* const*, const Code*, Vector<kIndex>...) {}

  using Codes = std::array<Code, ChainLink::codeOf(Link::kEnd, Source::kMemory) + 1>;
  template <class F>
  static constexpr void put(Codes& codes, F, Link link, Source a = Source::kMemory) {
    Code* forms = &codes[ChainLink::codeOf(link, a)];
    if constexpr (sizeof...(kIndex) < 8) {
      for (int form = 0; form < 4; ++form) forms[form] = {run<F, kTested>};
    } else {
      forms[0] = {run<F, 0>};
      forms[1] = {run<F, 1>};
      forms[2] = {run<F, 2>};
      forms[3] = {run<F, 3>};
    }
  }

// A statement on vector i of the accumulator, x, with operands o. Others: expressions of x and the
// link's operand, y; or of x alone.
#define FROM(Name, source, ...)                                                                 \
  put(                                                                                          \
      codes,                                                                                    \
      []([[maybe_unused]] Float& x, [[maybe_unused]] const Operands& o, [[maybe_unused]] int i) \
          IPUJAX_FN {                                                                           \
            [[maybe_unused]] constexpr Source kSource = Source::source;                         \
            __VA_ARGS__;                                                                        \
          },                                                                                    \
      Link::Name, Source::source);
#define UNARY(Name, expression) FROM(Name, kMemory, x = (Float)(expression))
#define VECTORS(Name, ...)         \
  FROM(Name, kMemory, __VA_ARGS__) \
  FROM(Name, kScalar, __VA_ARGS__)
#define BINARY(Name, V, expression) \
  VECTORS(                          \
      Name, x = (Float)[](V x, V y) \
                IPUJAX_FN { return expression; }((V)x, o.vector<kSource, V>(o.a, i)))
#define MASKS(Name, ...)           \
  FROM(Name, kMemory, __VA_ARGS__) \
  FROM(Name, kScalar, __VA_ARGS__) \
  FROM(Name, kKeptMask, __VA_ARGS__)
#define MASK(Name, expression)          \
  MASKS(                                \
      Name, x = (Float)[](Int x, Int y) \
                IPUJAX_FN { return expression; }((Int)x, o.mask<kSource>(o.a, i)))
  // Long: a row for each link.
  static constexpr Codes allCodes() {
    Codes codes{};
    VECTORS(kLoad, x = (o.vector<kSource, Float>(o.a, i)))
    MASKS(kLoadBool, x = (Float)o.mask<kSource>(o.a, i))
    FROM(kLoadHalf, kMemory, x = loadHalf(o.a + i * kLanes * 2))
    FROM(kStore, kMemory, store(const_cast<std::byte*>(o.a) + i * kBytes, x))
    FROM(kStoreBool, kMemory, storeMask(const_cast<std::byte*>(o.a) + i * kLanes, (Int)x))
    FROM(kStoreHalf, kMemory, storeHalf(const_cast<std::byte*>(o.a) + i * kLanes * 2, x))
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
    VECTORS(kSelect, x = (Int)x ? o.vector<kSource, Float>(o.a, i) : o.vectorOfB(i))
    VECTORS(kSelectTrue, x = o.maskOfB(i) ? x : o.vector<kSource, Float>(o.a, i))
    VECTORS(kSelectFalse, x = o.maskOfB(i) ? o.vector<kSource, Float>(o.a, i) : x)
    codes.back() = {end};
    return codes;
  }
#undef FROM
#undef UNARY
#undef VECTORS
#undef BINARY
#undef MASKS
#undef MASK
};

template <class S>
constexpr auto kCodes = S::allCodes();

/// Whole strips of n elements; returns how many elements those are.
template <int... kIndex>
std::int64_t runStrips(Strip<kIndex...>, const ChainLink* links, std::byte** memory,
                       const std::uint8_t* steps, std::size_t num_memory, std::int64_t n) {
  using S = Strip<kIndex...>;
  const auto* codes = kCodes<S>.data();
  std::int64_t done = 0;
  for (; done + S::kElements <= n; done += S::kElements) {
    codes[links->code].run(links, memory, codes, (static_cast<void>(kIndex), Float{})...);
    for (std::size_t m = 0; m < num_memory; ++m) memory[m] += steps[m] * S::kElements;
  }
  return done;
}
}  // namespace

std::int64_t chainLanes() { return kLanes; }

void runChain(const ChainLink* links, std::byte** memory, const std::uint8_t* steps,
              std::size_t num_memory, std::int64_t n) {
  n -= runStrips(Strip<0, 1, 2, 3, 4, 5, 6, 7>{}, links, memory, steps, num_memory, n);
  n -= runStrips(Strip<0, 1, 2, 3>{}, links, memory, steps, num_memory, n);
  runStrips(Strip<0>{}, links, memory, steps, num_memory, n);
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
