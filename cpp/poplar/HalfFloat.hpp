#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Codelets compute with the compiler's own half, which rounds after every operation as an IPU does.
#if defined(IPUJAX_CODELETS) && defined(__FLT16_MANT_DIG__) && !defined(IPUJAX_HALF_ROUNDING)
#define IPUJAX_NATIVE_HALF 1
#endif

/// The number of codelets that C++ does not have: `half`. Where the compiler has no such type, it
/// is stored as IEEE half and computed in float.
namespace poplar {

/// IEEE binary16 storage; converts to float, rounds to nearest even.
class half_storage {
 public:
  half_storage() = default;
  constexpr half_storage(float value) : bits_(round(value)) {}  // NOLINT: as a number
  constexpr half_storage(double value) : bits_(round(static_cast<float>(value))) {}    // NOLINT
  constexpr half_storage(int value) : bits_(round(static_cast<float>(value))) {}       // NOLINT
  constexpr half_storage(unsigned value) : bits_(round(static_cast<float>(value))) {}  // NOLINT
  constexpr operator float() const { return widen(bits_); }                            // NOLINT

  constexpr std::uint16_t bit16() const { return bits_; }
  static half_storage fromBits(std::uint16_t bits) {
    half_storage made;
    made.bits_ = bits;
    return made;
  }

  half_storage& operator+=(float o) { return *this = half_storage(float(*this) + o); }
  half_storage& operator-=(float o) { return *this = half_storage(float(*this) - o); }
  half_storage& operator*=(float o) { return *this = half_storage(float(*this) * o); }
  half_storage& operator/=(float o) { return *this = half_storage(float(*this) / o); }

 private:
  static constexpr float asFloat(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
  static constexpr std::uint32_t asBits(float value) {
    return __builtin_bit_cast(std::uint32_t, value);
  }
  static constexpr float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return asFloat(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u) return asFloat(sign | ((magnitude << 13) + 0x38000000u));
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  static constexpr std::uint16_t round(float value) {
    const std::uint32_t bits = asBits(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    std::uint32_t result = 0;
    if (magnitude > 0x7f800000u) {
      result = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) {
      result = 0x7c00u;  // rounds to infinity
    } else if (magnitude < 0x38800000u) {
      result = asBits(asFloat(magnitude) + 0.5f) - 0x3f000000u;  // a multiple of 2^-24
    } else {
      result = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
  }

  std::uint16_t bits_;
};

/// By the name of hosts' code, whatever `half` is.
using IeeeHalf = half_storage;

}  // namespace poplar

#ifdef IPUJAX_HALF_ROUNDING
#include "poplar/codelets/rounded_half.h"
#endif

namespace poplar {

#ifdef IPUJAX_NATIVE_HALF
using half = _Float16;
#elif defined(IPUJAX_HALF_ROUNDING)
using half = RoundedHalf;
#else
using half = half_storage;
#endif

/// A short vector of halves where the compiler has none.
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
