#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

#include "engine/kernels/reduce/Extremes.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "engine/simd/Registers.hpp"

/// Elements, vectors and combinations of the reduction loops. Only for *.simd.cpp files: each
/// instruction set has its own copy.
#define FORCE_INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))

namespace ipujax::engine::reduction {
namespace IPUJAX_ISA_NAMESPACE {
namespace {  // NOLINT: each file needs its own copy

using simd::IPUJAX_ISA_NAMESPACE::kRegisterBytes;

template <class T>
constexpr int kLanes = 64 / static_cast<int>(sizeof(T));

/// 64 bytes of elements, in as many registers as they take: the number of lanes decides the order
/// of combination, so it is the same for each instruction set. (One vector type of 64 bytes would
/// do it too, but where registers are shorter GCC compares such vectors element by element.)
template <class T>
struct Vector {
  typedef T Part __attribute__((vector_size(kRegisterBytes)));
  static constexpr int kParts = 64 / kRegisterBytes;
  static constexpr int kPartLanes = kRegisterBytes / static_cast<int>(sizeof(T));
  Part part[kParts];
};

template <class T>
constexpr bool kIsVector = false;
template <class T>
constexpr bool kIsVector<Vector<T>> = true;

/// Calls f(integral_constant 0), f(integral_constant 1) ...: keeps all parts in registers.
template <class F, int... kIndex>
FORCE_INLINE void unrolled(const F& f, std::integer_sequence<int, kIndex...>) {
  (f(std::integral_constant<int, kIndex>{}), ...);
}
template <int kCount, class F>
FORCE_INLINE void unrolled(const F& f) {
  unrolled(f, std::make_integer_sequence<int, kCount>{});
}

/// Loads part by part: a copy of the whole would keep it in memory.
template <class T>
FORCE_INLINE Vector<T> loaded(const T* p) {
  using V = Vector<T>;
  V v;
  unrolled<V::kParts>([&](auto i) INLINE_LAMBDA {
    std::memcpy(&v.part[i], p + i * V::kPartLanes, kRegisterBytes);
  });
  return v;
}
template <class T>
FORCE_INLINE void stored(T* p, const Vector<T>& v) {
  using V = Vector<T>;
  unrolled<V::kParts>([&](auto i) INLINE_LAMBDA {
    std::memcpy(p + i * V::kPartLanes, &v.part[i], kRegisterBytes);
  });
}

template <class T>
FORCE_INLINE Vector<T> splat(T x) {
  Vector<T> v;  // a difference, since 0 + -0 is +0
  unrolled<Vector<T>::kParts>([&](auto i)
                                  INLINE_LAMBDA { v.part[i] = x - typename Vector<T>::Part{}; });
  return v;
}

/// Lanes kFirst, kFirst + kStep ... of a followed by b.
template <int kFirst, int kStep, class Part, int... kIndex>
FORCE_INLINE Part picked(Part a, Part b, std::integer_sequence<int, kIndex...>) {
  return __builtin_shufflevector(a, b, (kFirst + kStep * kIndex)...);
}
template <class T, int kFirst, int kStep = 1>
FORCE_INLINE typename Vector<T>::Part lanesFrom(typename Vector<T>::Part a,
                                                typename Vector<T>::Part b) {
  return picked<kFirst, kStep>(a, b, std::make_integer_sequence<int, Vector<T>::kPartLanes>{});
}

/// Every second element of the 2 * kLanes at x.
template <class T>
FORCE_INLINE Vector<T> loadEven(const T* x) {
  using V = Vector<T>;
  const V low = loaded(x);
  const V high = loaded(x + kLanes<T>);
  V v;
  const auto part = [&](int k) INLINE_LAMBDA {
    return k < V::kParts ? low.part[k] : high.part[k - V::kParts];
  };
  unrolled<V::kParts>(
      [&](auto i) INLINE_LAMBDA { v.part[i] = lanesFrom<T, 0, 2>(part(2 * i), part(2 * i + 1)); });
  return v;
}

/// Each lane takes the value kBy lanes before it; the first kBy take `none`.
template <int kBy, class T>
FORCE_INLINE Vector<T> shifted(const Vector<T>& v, const Vector<T>& none) {
  using V = Vector<T>;
  constexpr int kL = V::kPartLanes;
  V s;
  unrolled<V::kParts>([&](auto i) INLINE_LAMBDA {
    constexpr int kFrom = i() * kL - kBy + 64;  // 64: no negative numbers
    constexpr int kPart = kFrom / kL - 64 / kL;
    const auto part = [&](int k) INLINE_LAMBDA { return k < 0 ? none.part[0] : v.part[k]; };
    if constexpr (kFrom % kL == 0) {
      s.part[i] = part(kPart);
    } else {
      s.part[i] = lanesFrom<T, kFrom % kL>(part(kPart), part(kPart + 1));
    }
  });
  return s;
}

struct Half {
  std::uint16_t bits;
};

FORCE_INLINE float toFloat(Half h) {
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
#endif
}

/// How elements of `In` become accumulators.
template <class In>
struct Input {
  using Acc = In;
  static FORCE_INLINE void load(const In* p, Vector<In>& v) { v = loaded(p); }
  static FORCE_INLINE Acc one(const In* p) { return *p; }
};
template <>
struct Input<Half> {
  using Acc = float;
  static FORCE_INLINE void load(const Half* p, Vector<float>& v) {
#if defined(__AVX512F__)
    v.part[0] = (Vector<float>::Part)_mm512_maskz_cvtph_ps(
        0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__) && defined(__AVX2__)
    for (int i = 0; i < 2; ++i)
      v.part[i] = (Vector<float>::Part)_mm256_cvtph_ps(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8 * i)));
#else
    float wide[16];
    for (int i = 0; i < 16; ++i) wide[i] = toFloat(p[i]);
    v = loaded(wide);
#endif
  }
  static FORCE_INLINE float one(const Half* p) { return toFloat(*p); }
};

template <class T>
struct ScalarOf {
  using type = std::remove_cvref_t<decltype(std::declval<T>()[0])>;
};
template <class T>
requires std::is_arithmetic_v<T>
struct ScalarOf<T> {
  using type = T;
};
template <class V>
constexpr bool kIsFloat = std::is_floating_point_v<typename ScalarOf<V>::type>;

/// Combines two accumulators by Self::of, which takes elements and registers.
template <class Self, bool kOfRounding = false>
struct Operation {
  static constexpr bool kRounds = kOfRounding;
  /// Transforms an element before it is combined.
  template <class V>
  static FORCE_INLINE V prepared(V v) {
    return v;
  }
  template <class V>
  static FORCE_INLINE void pre(V& v) {
    if constexpr (kIsVector<V>) {
      unrolled<V::kParts>([&](auto i) INLINE_LAMBDA { v.part[i] = Self::prepared(v.part[i]); });
    } else {
      v = Self::prepared(v);
    }
  }
  /// a = op(a, b).
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    if constexpr (kIsVector<V>) {
      unrolled<V::kParts>([&](auto i)
                              INLINE_LAMBDA { a.part[i] = Self::of(a.part[i], b.part[i]); });
    } else {
      a = Self::of(a, b);
    }
  }
};
/// Integers below 32 bits would be multiplied as signed ones.
template <class V>
FORCE_INLINE V product(V a, V b) {
  if constexpr (std::is_integral_v<V> && sizeof(V) < 4) {
    return static_cast<V>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
  } else {
    return a * b;
  }
}

template <class Self>
struct Sum : Operation<Self, true> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    return static_cast<V>(a + b);
  }
  template <class T>
  static constexpr T identity = T(0);
};
struct Add : Sum<Add> {};
struct SquareAdd : Sum<SquareAdd> {
  template <class V>
  static FORCE_INLINE V prepared(V v) {
    return product(v, v);
  }
};
struct Multiply : Operation<Multiply> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    return product(a, b);
  }
  template <class T>
  static constexpr T identity = T(1);
};
struct Minimum : Operation<Minimum> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    if constexpr (kIsFloat<V>) {
      return extremeOf<false>(a, b);
    } else {
      return a < b ? a : b;
    }
  }
  template <class T>
  static constexpr T identity = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                            : std::numeric_limits<T>::max();
};
struct Maximum : Operation<Maximum> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    if constexpr (kIsFloat<V>) {
      return extremeOf<true>(a, b);
    } else {
      return a > b ? a : b;
    }
  }
  template <class T>
  static constexpr T identity = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                            : std::numeric_limits<T>::lowest();
};
struct And : Operation<And> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    return static_cast<V>(a & b);
  }
  template <class T>
  static constexpr T identity = static_cast<T>(~T(0));
};
struct Or : Operation<Or> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    return static_cast<V>(a | b);
  }
  template <class T>
  static constexpr T identity = T(0);
};
struct Xor : Operation<Xor> {
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    return static_cast<V>(a ^ b);
  }
  template <class T>
  static constexpr T identity = T(0);
};
struct LogAdd : Operation<LogAdd> {
  static float one(float a, float b) {
    const float high = a > b || a != a ? a : b;
    const float low = a > b || a != a ? b : a;
    if (high == -std::numeric_limits<float>::infinity()) return high;
    if (high == std::numeric_limits<float>::infinity()) return high + (low != low ? low : 0.0f);
    return high + std::log1p(std::exp(low - high));
  }
  template <class V>
  static FORCE_INLINE V of(V a, V b) {
    if constexpr (std::is_arithmetic_v<V>) {
      return one(a, b);
    } else {
      for (int i = 0; i < Vector<float>::kPartLanes; ++i) a[i] = one(a[i], b[i]);
      return a;
    }
  }
  template <class T>
  static constexpr T identity = -std::numeric_limits<T>::infinity();
};

/// a = op(a, element or vector at p).
template <class In, class Op, class A>
FORCE_INLINE void take(A& a, const In* p) {
  if constexpr (std::is_arithmetic_v<A>) {
    A v = Input<In>::one(p);
    Op::pre(v);
    Op::into(a, v);
  } else {
    A v;
    Input<In>::load(p, v);
    Op::pre(v);
    Op::into(a, v);
  }
}

template <class In, class Op, class A>
FORCE_INLINE void first(A& a, const In* p) {
  Input<In>::load(p, a);
  Op::pre(a);
}

/// Combines the lower half of kWidth * 2 lanes with the upper, and so on down to one lane.
template <class T, class Op, int kWidth>
FORCE_INLINE T foldPart(typename Vector<T>::Part v) {
  if constexpr (kWidth == 1) {
    return Op::of(T(v[0]), T(v[1]));
  } else {
    return foldPart<T, Op, kWidth / 2>(Op::of(v, lanesFrom<T, kWidth>(v, v)));
  }
}

/// Folds a vector's lanes as a tree: each step combines the lower half with the upper.
template <class T, class Op>
FORCE_INLINE T foldVector(const Vector<T>& v) {
  using V = Vector<T>;
  if constexpr (sizeof(T) == 4 && !std::is_same_v<Op, LogAdd>) {
    V a = v;
    if constexpr (V::kParts == 4) {
      a.part[0] = Op::of(a.part[0], a.part[2]);
      a.part[1] = Op::of(a.part[1], a.part[3]);
    }
    if constexpr (V::kParts > 1) a.part[0] = Op::of(a.part[0], a.part[1]);
    return foldPart<T, Op, V::kPartLanes / 2>(a.part[0]);
  } else {
    constexpr int kL = kLanes<T>;
    T lanes[kL];
    stored(lanes, v);
    for (int width = kL / 2; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) Op::into(lanes[j], lanes[j + width]);
    }
    return lanes[0];
  }
}

/// v = op(v, the n < kLanes elements at p).
template <class In, class Op, class Acc = typename Input<In>::Acc>
FORCE_INLINE void takePart(Vector<Acc>& v, const In* p, std::int64_t n) {
  if (n <= 0) return;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<In, float>) {
    const auto mask = static_cast<__mmask16>((1u << n) - 1);
    const __m512 none = _mm512_set1_ps(Op::template identity<float>);
    Vector<Acc> part;
    part.part[0] = (typename Vector<Acc>::Part)_mm512_mask_loadu_ps(none, mask, p);
    Op::pre(part);
    Op::into(v, part);
    return;
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<In, float>) {
    const __m256 none = _mm256_set1_ps(Op::template identity<float>);
    Vector<Acc> part;
    for (int i = 0; i < Vector<Acc>::kParts; ++i) {
      const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      const __m256i mask =
          _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n) - 8 * i), lanes);
      const __m256 some = _mm256_maskload_ps(p + 8 * i, mask);
      part.part[i] = (typename Vector<Acc>::Part)_mm256_blendv_ps(none, some, (__m256)mask);
    }
    Op::pre(part);
    Op::into(v, part);
    return;
  }
#endif
  constexpr int kL = kLanes<Acc>;
  Acc lanes[kL];
  const Acc identity = Op::template identity<Acc>;
  for (int j = 0; j < kL; ++j) lanes[j] = identity;
  for (std::int64_t j = 0; j < n; ++j) {
    lanes[j] = Input<In>::one(p + j);
    Op::pre(lanes[j]);
  }
  Op::into(v, loaded(lanes));
}

template <class In, class Make>
void makeFloats(ElementType type, const Make& make) {
  make.template operator()<In, Add>(Reducer::kAdd, type);
  make.template operator()<In, Multiply>(Reducer::kMultiply, type);
  make.template operator()<In, Minimum>(Reducer::kMinimum, type);
  make.template operator()<In, Maximum>(Reducer::kMaximum, type);
  make.template operator()<In, SquareAdd>(Reducer::kSquareAdd, type);
  if constexpr (!std::is_same_v<In, double>)
    make.template operator()<In, LogAdd>(Reducer::kLogAdd, type);
}

/// Sums and products of integers are computed as unsigned, so that they wrap.
template <class T, class Make>
void makeIntegers(ElementType type, const Make& make) {
  using U = std::make_unsigned_t<T>;
  make.template operator()<U, Add>(Reducer::kAdd, type);
  make.template operator()<U, Multiply>(Reducer::kMultiply, type);
  make.template operator()<T, Minimum>(Reducer::kMinimum, type);
  make.template operator()<T, Maximum>(Reducer::kMaximum, type);
  make.template operator()<U, And>(Reducer::kAnd, type);
  make.template operator()<U, Or>(Reducer::kOr, type);
  make.template operator()<U, Xor>(Reducer::kXor, type);
  make.template operator()<U, SquareAdd>(Reducer::kSquareAdd, type);
}

/// Calls make<In, Op>(reducer, type) for all reducers of all types that have them. bool is held as
/// 0 or 1: a sum is "or", a product "and".
template <class Make>
void makeReducers(const Make& make) {
  makeFloats<float>(ElementType::kFloat, make);
  makeFloats<Half>(ElementType::kHalf, make);
  makeFloats<double>(ElementType::kDouble, make);
  makeIntegers<std::int8_t>(ElementType::kInt8, make);
  makeIntegers<std::uint8_t>(ElementType::kUInt8, make);
  makeIntegers<std::int16_t>(ElementType::kInt16, make);
  makeIntegers<std::uint16_t>(ElementType::kUInt16, make);
  makeIntegers<std::int32_t>(ElementType::kInt32, make);
  makeIntegers<std::uint32_t>(ElementType::kUInt32, make);
  makeIntegers<std::int64_t>(ElementType::kInt64, make);
  makeIntegers<std::uint64_t>(ElementType::kUInt64, make);
  for (Reducer r : {Reducer::kAnd, Reducer::kMultiply, Reducer::kMinimum})
    make.template operator()<std::uint8_t, And>(r, ElementType::kBool);
  for (Reducer r : {Reducer::kOr, Reducer::kAdd, Reducer::kMaximum})
    make.template operator()<std::uint8_t, Or>(r, ElementType::kBool);
  make.template operator()<std::uint8_t, Xor>(Reducer::kXor, ElementType::kBool);
}

}  // namespace
}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::reduction
