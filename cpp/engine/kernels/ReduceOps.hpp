#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

#include "engine/kernels/ReduceKernels.hpp"
#include "engine/simd/Isa.hpp"

/// Elements, vectors and combinations of the reduction loops. Only for *.simd.cpp files: each
/// instruction set has its own copy.
#define FORCE_INLINE inline __attribute__((always_inline))

namespace ipujax::engine::reduction {
namespace IPUJAX_ISA_NAMESPACE {
namespace {  // NOLINT: a copy a file is what is wanted

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int kLanes = 64 / static_cast<int>(sizeof(T));

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
  static FORCE_INLINE void load(const In* p, Vector<In>& v) { std::memcpy(&v, p, sizeof v); }
  static FORCE_INLINE Acc one(const In* p) { return *p; }
};
template <>
struct Input<Half> {
  using Acc = float;
  static FORCE_INLINE void load(const Half* p, Vector<float>& v) {
#if defined(__AVX512F__)
    const __m512 wide =
        _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    std::memcpy(&v, &wide, sizeof v);
#else
    for (int i = 0; i < 16; ++i) v[i] = toFloat(p[i]);
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

struct Add {
  static constexpr bool kRounds = true;
  template <class V>
  static FORCE_INLINE void pre(V&) {}
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    a = static_cast<V>(a + b);
  }
  template <class T>
  static T identity() {
    return T(0);
  }
};
struct SquareAdd : Add {
  template <class V>
  static FORCE_INLINE void pre(V& v) {
    if constexpr (std::is_integral_v<V> && sizeof(V) < 4) {
      v = static_cast<V>(static_cast<unsigned>(v) * static_cast<unsigned>(v));
    } else {
      v = v * v;
    }
  }
};
struct Exact {
  static constexpr bool kRounds = false;
  template <class V>
  static FORCE_INLINE void pre(V&) {}
};
struct Multiply : Exact {
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    if constexpr (std::is_integral_v<V> && sizeof(V) < 4) {
      a = static_cast<V>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
    } else {
      a = a * b;
    }
  }
  template <class T>
  static T identity() {
    return T(1);
  }
};
struct Minimum : Exact {
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    if constexpr (kIsFloat<V>) {
      a = ((a < b) | (a != a)) ? a : b;
    } else {
      a = a < b ? a : b;
    }
  }
  template <class T>
  static T identity() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::max();
  }
};
struct Maximum : Exact {
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    if constexpr (kIsFloat<V>) {
      a = ((a > b) | (a != a)) ? a : b;
    } else {
      a = a > b ? a : b;
    }
  }
  template <class T>
  static T identity() {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::lowest();
  }
};
struct And : Exact {
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    a = static_cast<V>(a & b);
  }
  template <class T>
  static T identity() {
    return static_cast<T>(~T(0));
  }
};
struct Or : Exact {
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    a = static_cast<V>(a | b);
  }
  template <class T>
  static T identity() {
    return T(0);
  }
};
struct Xor : Exact {
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    a = static_cast<V>(a ^ b);
  }
  template <class T>
  static T identity() {
    return T(0);
  }
};
struct LogAdd : Exact {
  static float scalar(float a, float b) {
    const float high = a > b || a != a ? a : b;
    const float low = a > b || a != a ? b : a;
    if (high == -std::numeric_limits<float>::infinity()) return high;
    if (high == std::numeric_limits<float>::infinity()) return high + (low != low ? low : 0.0f);
    return high + std::log1p(std::exp(low - high));
  }
  template <class V>
  static FORCE_INLINE void into(V& a, const V& b) {
    if constexpr (std::is_arithmetic_v<V>) {
      a = scalar(a, b);
    } else {
      for (int i = 0; i < kLanes<float>; ++i) a[i] = scalar(a[i], b[i]);
    }
  }
  template <class T>
  static T identity() {
    return -std::numeric_limits<T>::infinity();
  }
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

/// The tree of a vector's lanes: each step combines the lower half with the upper.
template <class T, class Op>
FORCE_INLINE T foldVector(Vector<T>& v) {
  if constexpr (sizeof(T) == 4 && !std::is_same_v<Op, LogAdd>) {
    Vector<T> s =
        __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    Op::into(v, s);
    s = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
    Op::into(v, s);
    s = __builtin_shufflevector(v, v, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1);
    Op::into(v, s);
    T a = v[0];
    Op::into(a, v[1]);
    return a;
  } else {
    constexpr int kL = kLanes<T>;
    T lanes[kL];
    std::memcpy(lanes, &v, sizeof lanes);
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
    const __m512 none = _mm512_set1_ps(Op::template identity<float>());
    Vector<Acc> part;
    __m512 loaded = _mm512_mask_loadu_ps(none, mask, p);
    std::memcpy(&part, &loaded, sizeof part);
    Op::pre(part);
    Op::into(v, part);
    return;
  }
#endif
  constexpr int kL = kLanes<Acc>;
  Acc lanes[kL];
  const Acc identity = Op::template identity<Acc>();
  for (int j = 0; j < kL; ++j) lanes[j] = identity;
  for (std::int64_t j = 0; j < n; ++j) {
    lanes[j] = Input<In>::one(p + j);
    Op::pre(lanes[j]);
  }
  Vector<Acc> part;
  std::memcpy(&part, lanes, sizeof part);
  Op::into(v, part);
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

/// Sums and products of integers are taken as unsigned: they wrap.
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
