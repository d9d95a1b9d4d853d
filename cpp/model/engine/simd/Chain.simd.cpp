#include "engine/simd/Chain.hpp"

#include <array>
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
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return (Int)_mm512_maskz_cvtepi8_epi32(0xffff, bytes) != 0;
#elif defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return (Int)_mm256_cvtepi8_epi32(bytes) != 0;
#else
  return __builtin_convertvector(load<Byte>(from), Int) != 0;
#endif
}
/// Stores a byte, 0 or 1, for each lane.
IPUJAX_INLINE void storeMask(std::byte* to, Int mask) {
#if defined(__AVX512F__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)(mask & 1)));
#elif defined(__AVX2__)
  const __m256i bits = (__m256i)(mask & 1);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
#else
  store(to, __builtin_convertvector(mask & 1, Byte));
#endif
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

IPUJAX_INLINE Float squareRoot(Float v) {
#if defined(__AVX512F__)
  return (Float)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);
#elif defined(__AVX2__)
  return (Float)_mm256_sqrt_ps((__m256)v);
#else
  for (int i = 0; i < kLanes; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}

IPUJAX_INLINE UInt rotateLeft(UInt x, UInt bits) {
#if defined(__AVX512F__)
  return (UInt)_mm512_maskz_rolv_epi32(0xffff, (__m512i)x, (__m512i)bits);
#else
  return (x << bits) | (x >> ((32u - bits) & 31u));
#endif
}

/// a > b ? a : b, and a < b ? a : b, as the instructions do.
IPUJAX_INLINE Float larger(Float a, Float b) {
#if defined(__AVX512F__)
  return (Float)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Float)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}
IPUJAX_INLINE Float smaller(Float a, Float b) {
#if defined(__AVX512F__)
  return (Float)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Float)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return a < b ? a : b;
#endif
}

// +0 is larger than -0.
IPUJAX_INLINE Float maximum(Float a, Float b) {
  const Float zeros = (Float)((Int)a & (Int)b);
  return ((a != a) | (a > b)) ? a : (a == b ? zeros : b);
}
IPUJAX_INLINE Float minimum(Float a, Float b) {
  const Float zeros = (Float)((Int)a | (Int)b);
  return ((a != a) | (a < b)) ? a : (a == b ? zeros : b);
}

IPUJAX_INLINE Float choose(Int mask, Float a, Float b) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return (Float)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);  // by signs
#else
  return mask ? a : b;
#endif
}

/// The operations of the links of kJoined.
template <Link kLink>
IPUJAX_INLINE Float combined(Float x, Float y) {
  if constexpr (kLink == Link::kAdd) return x + y;
  if constexpr (kLink == Link::kSubtract) return x - y;
  if constexpr (kLink == Link::kSubtractFrom) return y - x;
  if constexpr (kLink == Link::kMultiply) return x * y;
}

/// Where a link's operands are, for one strip: `at` elements from the stretch's first.
struct Operands {
  const std::byte *a, *b;
  std::int64_t at;

  template <Source kSource, class V>
  IPUJAX_FN V vector(const std::byte* from, int i) const {
    if constexpr (kSource == Source::kMemory) return load<V>(from + at * 4 + i * kBytes);
    std::uint32_t bits;  // as integers: adding -0.0 to zeros would lose the sign
    __builtin_memcpy(&bits, from, 4);
    return (V)(UInt{} + bits);
  }
  template <Source kSource>
  IPUJAX_FN Int mask(const std::byte* from, int i) const {
    if constexpr (kSource == Source::kKeptMask) return load<Int>(from + at * 4 + i * kBytes);
    if constexpr (kSource == Source::kMemory) return loadMask(from + at + i * kLanes);
    return Int{} - static_cast<std::int32_t>(*from != std::byte{0});
  }
  IPUJAX_FN std::byte* halfOfA(int i) const {
    return const_cast<std::byte*>(a) + at * 2 + i * kLanes * 2;
  }
};

/// Whether compilers make the last call of a link a jump: then a chain continues with the next
/// strip by itself.
#if defined(IPUJAX_NESTED_CALLS) || !defined(__OPTIMIZE__)
constexpr bool kJumps = false;
#else
constexpr bool kJumps = true;
#endif

/// Links over strips of sizeof...(kIndex) vectors: functions that take the accumulator as
/// arguments, change it, and call the next link as the last thing they do. Eight vectors are passed
/// in registers, and optimizing compilers make such a call a jump, so that the accumulator never
/// goes to memory. Other compilers nest the calls, as deep as a chain is long.
template <int... kIndex>
struct Strip {
  static constexpr std::int64_t kElements = sizeof...(kIndex) * kLanes;
  template <int>
  using Vector = Float;
  struct Code {
    void (*run)(const ChainLink*, const Code* codes, const ChainMemory* memory, std::int64_t at,
                Vector<kIndex>...);
  };
  /// F: what the link does to vector i of the accumulator. Form 1 stores, 2 loads, 3 does both;
  /// kTested tests the link when it runs, for narrow strips, which need not be as fast.
  static constexpr int kTested = 4;
  template <class F, int kForm>
  static void run(const ChainLink* link, const Code* codes, const ChainMemory* memory,
                  std::int64_t at, Vector<kIndex>... v) {
    const Operands operands{memory->at[link->a], memory->at[link->b], at};
    const std::byte* from = memory->at[link->from] + at * 4;
    std::byte* to = memory->at[link->to] + at * 4;
    const ChainLink* next = link + 1;
    const Code code = codes[next->code];
    const bool loads = kForm == kTested ? link->loads() : (kForm & 2) != 0;
    const bool stores = kForm == kTested ? link->stores() : (kForm & 1) != 0;
    if (loads) ((v = load<Float>(from + kIndex * kBytes)), ...);
    (F{}(v, operands, kIndex), ...);
    if (stores) (store(to + kIndex * kBytes, v), ...);
    return code.run(next, codes, memory, at, v...);
  }
  /// Continues with the next strip, which begins by loading its accumulator.
  static void end(const ChainLink*, const Code* codes, const ChainMemory* memory, std::int64_t at,
                  Vector<kIndex>... v) {
    at += kElements;
    if (!kJumps || at + kElements > memory->end) return;
    const ChainLink* first = memory->first;
    return codes[first->code].run(first, codes, memory, at, v...);
  }

  template <class F>
  static IPUJAX_FN Float each(Float v) {
    alignas(kBytes) float x[kLanes];
    store(x, v);
    IPUJAX_IVDEP
    for (int k = 0; k < kLanes; ++k) x[k] = F{}(x[k]);
    return load<Float>(x);
  }

  /// Applies F to each element of the accumulator, in a loop that compilers vectorise.
  template <class F>
  static void runFunction(const ChainLink* link, const Code* codes, const ChainMemory* memory,
                          std::int64_t at, Vector<kIndex>... v) {
    if (link->loads()) ((v = load<Float>(memory->at[link->from] + at * 4 + kIndex * kBytes)), ...);
    ((v = each<F>(v)), ...);
    if (link->stores()) (store(memory->at[link->to] + at * 4 + kIndex * kBytes, v), ...);
    return codes[link[1].code].run(link + 1, codes, memory, at, v...);
  }

  using Codes = std::array<Code, kNumLinkCodes>;
  template <class F>
  static constexpr void putFunction(Codes& codes, F, Link link) {
    Code* forms = &codes[ChainLink::codeOf(link, Source::kMemory)];
    for (int form = 0; form < 4; ++form) forms[form] = {runFunction<F>};
  }
  template <class F>
  static constexpr void put(Codes& codes, F f, Link link, Source a, Source b = Source::kMemory) {
    put(codes, f, ChainLink::codeOf(link, a, b));
  }
  template <class F>
  static constexpr void put(Codes& codes, F, std::size_t code) {
    Code* forms = &codes[code];
    if constexpr (sizeof...(kIndex) < 8) {
      for (int form = 0; form < 4; ++form) forms[form] = {run<F, kTested>};
    } else {
      forms[0] = {run<F, 0>};
      forms[1] = {run<F, 1>};
      forms[2] = {run<F, 2>};
      forms[3] = {run<F, 3>};
    }
  }

  /// The two links at places kFirst and kSecond in one.
  template <std::size_t kFirst, std::size_t kSecond>
  struct Joined {
    IPUJAX_FN void operator()(Float& x, const Operands& o, int i) const {
      constexpr std::size_t kSources = kJoinedSources.size();
      constexpr Source kA = kJoinedSources[kFirst % kSources];
      constexpr Source kB = kJoinedSources[kSecond % kSources];
      x = combined<kJoined[kFirst / kSources]>(x, o.template vector<kA, Float>(o.a, i));
      x = combined<kJoined[kSecond / kSources]>(x, o.template vector<kB, Float>(o.b, i));
    }
  };
  template <std::size_t... kPair>
  static constexpr void putJoined(Codes& codes, std::index_sequence<kPair...>) {
    (put(codes, Joined<kPair / kNumJoined, kPair % kNumJoined>{},
         joinedCode(kPair / kNumJoined, kPair % kNumJoined)),
     ...);
  }

// Macros take a statement on vector i of the accumulator, x, with operands o; or an expression of x
// and the link's operand, y, or of x alone.
#define FROM_BOTH(Name, source, second, ...)                                                    \
  put(                                                                                          \
      codes,                                                                                    \
      []([[maybe_unused]] Float& x, [[maybe_unused]] const Operands& o, [[maybe_unused]] int i) \
          IPUJAX_FN {                                                                           \
            [[maybe_unused]] constexpr Source kSource = Source::source;                         \
            [[maybe_unused]] constexpr Source kSecond = Source::second;                         \
            __VA_ARGS__;                                                                        \
          },                                                                                    \
      Link::Name, Source::source, Source::second);
#define FROM(Name, source, ...) FROM_BOTH(Name, source, kMemory, __VA_ARGS__)
#define UNARY(Name, expression) FROM(Name, kMemory, x = (Float)(expression))
#define VECTORS(Name, ...)         \
  FROM(Name, kMemory, __VA_ARGS__) \
  FROM(Name, kScalar, __VA_ARGS__)
#define BINARY(Name, V, expression) \
  VECTORS(                          \
      Name, x = (Float)[](V x, V y) \
                IPUJAX_FN { return expression; }((V)x, o.vector<kSource, V>(o.a, i)))
#define FUNCTION(Name, expression) \
  putFunction(                     \
      codes, [](float a) IPUJAX_FN { return expression; }, Link::Name);
#define SELECT(Name, second, ...)               \
  FROM_BOTH(Name, kMemory, second, __VA_ARGS__) \
  FROM_BOTH(Name, kScalar, second, __VA_ARGS__)
#define MASKS(Name, ...)           \
  FROM(Name, kMemory, __VA_ARGS__) \
  FROM(Name, kScalar, __VA_ARGS__) \
  FROM(Name, kKeptMask, __VA_ARGS__)
#define MASK(Name, expression)          \
  MASKS(                                \
      Name, x = (Float)[](Int x, Int y) \
                IPUJAX_FN { return expression; }((Int)x, o.mask<kSource>(o.a, i)))
#define OPERAND o.vector<kSource, Float>(o.a, i)
#define SELECTED x = choose((Int)x, OPERAND, o.vector<kSecond, Float>(o.b, i))
#define SELECTED_TRUE x = choose(o.mask<kSecond>(o.b, i), x, OPERAND)
#define SELECTED_FALSE x = choose(o.mask<kSecond>(o.b, i), OPERAND, x)
  // Long: a row for each link.
  static constexpr Codes allCodes() {
    Codes codes{};
    VECTORS(kLoad, x = (o.vector<kSource, Float>(o.a, i)))
    MASKS(kLoadBool, x = (Float)o.mask<kSource>(o.a, i))
    FROM(kLoadHalf, kMemory, x = loadHalf(o.halfOfA(i)))
    FROM(kStore, kMemory, store(const_cast<std::byte*>(o.a) + o.at * 4 + i * kBytes, x))
    FROM(kStoreBool, kMemory, storeMask(const_cast<std::byte*>(o.a) + o.at + i * kLanes, (Int)x))
    FROM(kStoreHalf, kMemory, storeHalf(o.halfOfA(i), x))
    UNARY(kRoundToHalf, roundToHalf(x))
    UNARY(kRoundToBFloat16, roundToBFloat16(x))
    UNARY(kAbs, (Int)x & 0x7fffffff)
    UNARY(kNegate, -x)
    UNARY(kSquare, x * x)
    UNARY(kInverse, 1.0f / x)
    UNARY(kSquareRoot, squareRoot(x))
    UNARY(kInverseSquareRoot, 1.0f / squareRoot(x))
    UNARY(kRelu, larger(Float{}, x))
    UNARY(kIsNan, x != x)
    FUNCTION(kExpm1, expm1Float(a))
    FUNCTION(kTanh, tanhFloat(a))
    BINARY(kAdd, Float, combined<Link::kAdd>(x, y))
    BINARY(kSubtract, Float, combined<Link::kSubtract>(x, y))
    BINARY(kSubtractFrom, Float, combined<Link::kSubtractFrom>(x, y))
    BINARY(kMultiply, Float, combined<Link::kMultiply>(x, y))
    BINARY(kDivide, Float, x / y)
    BINARY(kDivideInto, Float, y / x)
    BINARY(kMaximum, Float, maximum(x, y))
    BINARY(kMinimum, Float, minimum(x, y))
    BINARY(kMaximumOfNumber, Float, larger(y, x))
    BINARY(kMinimumOfNumber, Float, smaller(y, x))
    BINARY(kMaximumOfZero, Float, larger(y, x) + 0.0f)  // -0 becomes +0
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
    SELECT(kSelect, kMemory, SELECTED)
    SELECT(kSelect, kScalar, SELECTED)
    SELECT(kSelectTrue, kMemory, SELECTED_TRUE)
    SELECT(kSelectTrue, kScalar, SELECTED_TRUE)
    SELECT(kSelectTrue, kKeptMask, SELECTED_TRUE)
    SELECT(kSelectFalse, kMemory, SELECTED_FALSE)
    SELECT(kSelectFalse, kScalar, SELECTED_FALSE)
    SELECT(kSelectFalse, kKeptMask, SELECTED_FALSE)
    putJoined(codes, std::make_index_sequence<kNumJoined * kNumJoined>{});
    codes[ChainLink::codeOf(Link::kEnd, Source::kMemory)] = {end};
    return codes;
  }
#undef FROM_BOTH
#undef FROM
#undef SELECT
#undef FUNCTION
#undef OPERAND
#undef SELECTED
#undef SELECTED_TRUE
#undef SELECTED_FALSE
#undef UNARY
#undef VECTORS
#undef BINARY
#undef MASKS
#undef MASK
};

template <class S>
constexpr auto kCodes = S::allCodes();

/// Runs whole strips of elements [at, memory.end); returns the first element that is in none.
template <int... kIndex>
std::int64_t runStrips(Strip<kIndex...>, const ChainMemory& memory, std::int64_t at) {
  using S = Strip<kIndex...>;
  const std::int64_t strips = (memory.end - at) / S::kElements;
  const auto* codes = kCodes<S>.data();
  for (std::int64_t i = 0; i < strips; i += kJumps ? strips : 1) {
    codes[memory.first->code].run(memory.first, codes, &memory, at + i * S::kElements,
                                  (static_cast<void>(kIndex), Float{})...);
  }
  return at + strips * S::kElements;
}
}  // namespace

std::int64_t chainLanes() { return kLanes; }

void runChain(const ChainLink* links, ChainMemory& memory, std::span<const std::uint8_t> steps,
              std::int64_t n) {
  memory.first = links;
  const std::int64_t stretch = memory.num_kept > 0 ? stretchOf(memory.num_kept) : n;
  for (std::int64_t left = n; left > 0; left -= stretch) {
    memory.end = left < stretch ? left : stretch;
    std::int64_t at = runStrips(Strip<0, 1, 2, 3, 4, 5, 6, 7>{}, memory, 0);
    at = runStrips(Strip<0, 1, 2, 3>{}, memory, at);
    runStrips(Strip<0>{}, memory, at);
    for (std::size_t k = 0; k < steps.size(); ++k) memory.at[k] += steps[k] * memory.end;
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
