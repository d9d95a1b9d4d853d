#pragma once
#include "ipu_registers.h"

// The half of codelets that round stochastically: HalfFloat.hpp includes it if the model compiles
// with IPUJAX_HALF_ROUNDING. The compiler's own half only rounds to nearest.
namespace poplar {

enum : unsigned {
  kRoundsStochastically = 1,
  kSaturates = 2,     ///< finite values beyond the largest half become it
  kOverflowsToNan = 4,
};

/// Rounds a float to one of the two halves around it at random, so that the mean is the float; a
/// float that is a half stays. Uses the worker's generator.
inline half_storage roundedHalf(float x) {
  if (!(x - x == 0)) return half_storage(x);  // infinity or NaN
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  bits &= 0x7f800000u;
  float power = 0;
  std::memcpy(&power, &bits, sizeof(bits));
  const float step = power * 0x1p-10f > 0x1p-24f ? power * 0x1p-10f : 0x1p-24f;
  // 12 bits: added to the 11 of x / step, the sum is exact.
  const float random = static_cast<float>(ipujax_registers::next() >> 52) * 0x1p-12f;
  const float y = __builtin_floorf(x / step + random) * step;
  constexpr unsigned kMode = IPUJAX_HALF_ROUNDING;
  const bool beyond = y >= 65520 || y <= -65520;
  if (beyond && (kMode & kSaturates) != 0) return half_storage(y > 0 ? 65504.0f : -65504.0f);
  if (beyond && (kMode & kOverflowsToNan) != 0) return half_storage(__builtin_nanf(""));
  return half_storage(y);
}

/// Rounds after every operation, as the compiler's half does; with a float the result is a float.
class RoundedHalf {
 public:
  RoundedHalf() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr RoundedHalf(T value)  // NOLINT: as a number
      : held_(__builtin_is_constant_evaluated() ? half_storage(static_cast<float>(value))
                                                : roundedHalf(static_cast<float>(value))) {}
  constexpr operator float() const { return held_; }  // NOLINT: as a number
  /// Rounds a literal to nearest, since it is not the result of arithmetic.
  static constexpr RoundedHalf nearest(float value) {
    RoundedHalf made(0);
    made.held_ = half_storage(value);
    return made;
  }

#define IPUJAX_HALF_ASSIGNS(op)               \
  template <class T>                          \
  RoundedHalf& operator op##=(const T& by) {  \
    return *this = RoundedHalf(*this op by);  \
  }
  IPUJAX_HALF_ASSIGNS(+)
  IPUJAX_HALF_ASSIGNS(-)
  IPUJAX_HALF_ASSIGNS(*)
  IPUJAX_HALF_ASSIGNS(/)
#undef IPUJAX_HALF_ASSIGNS
  RoundedHalf& operator++() { return *this += 1; }
  RoundedHalf& operator--() { return *this -= 1; }
  friend constexpr RoundedHalf operator-(RoundedHalf x) { return nearest(-float(x)); }
  friend constexpr RoundedHalf operator+(RoundedHalf x) { return x; }

 private:
  half_storage held_;
};

#define IPUJAX_HALF_OPERATOR(op)                                                       \
  constexpr RoundedHalf operator op(RoundedHalf a, RoundedHalf b) {                    \
    return RoundedHalf(float(a) op float(b));                                          \
  }                                                                                    \
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>                  \
  constexpr RoundedHalf operator op(RoundedHalf a, T b) {                              \
    return a op RoundedHalf(b);                                                        \
  }                                                                                    \
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>                  \
  constexpr RoundedHalf operator op(T a, RoundedHalf b) {                              \
    return RoundedHalf(a) op b;                                                        \
  }                                                                                    \
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>           \
  constexpr T operator op(RoundedHalf a, T b) {                                        \
    return float(a) op b;                                                              \
  }                                                                                    \
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>           \
  constexpr T operator op(T a, RoundedHalf b) {                                        \
    return a op float(b);                                                              \
  }
IPUJAX_HALF_OPERATOR(+)
IPUJAX_HALF_OPERATOR(-)
IPUJAX_HALF_OPERATOR(*)
IPUJAX_HALF_OPERATOR(/)
#undef IPUJAX_HALF_OPERATOR

}  // namespace poplar
