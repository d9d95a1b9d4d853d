#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Codelets compute with the compiler's own half, which rounds after every operation as an IPU does.
#if defined(IPUJAX_CODELETS) && defined(__FLT16_MANT_DIG__) && !defined(IPUJAX_HALF_ROUNDING)
#define IPUJAX_NATIVE_HALF 1
#endif

#include "poplar/codelets/half_storage.h"

#ifdef IPUJAX_HALF_ROUNDING
#include "poplar/codelets/rounded_half.h"
#endif

namespace poplar {

/// The half type of codelets. If the compiler has no such type, it is stored as IEEE half and
/// computed in float.
#ifdef IPUJAX_NATIVE_HALF
using half = _Float16;
#elif defined(IPUJAX_HALF_ROUNDING)
using half = RoundedHalf;
#else
using half = half_storage;
#endif

/// A short vector of halves, for compilers without one.
template <int N>
class HalfVector {
 public:
  HalfVector() = default;
  template <class... Lanes, class = std::enable_if_t<sizeof...(Lanes) == N>>
  constexpr HalfVector(Lanes... lanes) : lanes_{half(lanes)...} {}
  HalfVector(half all) {  // NOLINT: as a number
    for (half& lane : lanes_) lane = all;
  }
  half& operator[](int i) { return lanes_[i]; }
  const half& operator[](int i) const { return lanes_[i]; }

  friend HalfVector operator+(const HalfVector& a, const HalfVector& b) {
    return each(a, b, [](float x, float y) { return x + y; });
  }
  friend HalfVector operator-(const HalfVector& a, const HalfVector& b) {
    return each(a, b, [](float x, float y) { return x - y; });
  }
  friend HalfVector operator*(const HalfVector& a, const HalfVector& b) {
    return each(a, b, [](float x, float y) { return x * y; });
  }
  friend HalfVector operator/(const HalfVector& a, const HalfVector& b) {
    return each(a, b, [](float x, float y) { return x / y; });
  }
  friend HalfVector operator-(const HalfVector& a) {
    return each(a, a, [](float x, float) { return -x; });
  }
  HalfVector& operator+=(const HalfVector& b) { return *this = *this + b; }
  HalfVector& operator-=(const HalfVector& b) { return *this = *this - b; }
  HalfVector& operator*=(const HalfVector& b) { return *this = *this * b; }
  HalfVector& operator/=(const HalfVector& b) { return *this = *this / b; }

 private:
  template <class F>
  static HalfVector each(const HalfVector& a, const HalfVector& b, F f) {
    HalfVector made;
    for (int i = 0; i < N; ++i) made[i] = half(f(float(a[i]), float(b[i])));
    return made;
  }
  half lanes_[N];
};

}  // namespace poplar

using half = poplar::half;

#include "poplar/codelets/short_vectors.h"

#if !defined(IPUJAX_NATIVE_HALF) || !defined(__STDCPP_FLOAT16_T__)
template <>
class std::numeric_limits<poplar::half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false,
                        is_exact = false, has_infinity = true, has_quiet_NaN = true;
  static constexpr int radix = 2, digits = 11, digits10 = 3, max_exponent = 16, min_exponent = -13;
  static constexpr poplar::half min() { return poplar::half(0x1p-14f); }
  static constexpr poplar::half denorm_min() { return poplar::half(0x1p-24f); }
  static constexpr poplar::half max() { return poplar::half(65504.0f); }
  static constexpr poplar::half lowest() { return poplar::half(-65504.0f); }
  static constexpr poplar::half epsilon() { return poplar::half(0x1p-10f); }
  static constexpr poplar::half infinity() { return poplar::half(__builtin_inff()); }
  static constexpr poplar::half quiet_NaN() { return poplar::half(__builtin_nanf("")); }
};
#endif
