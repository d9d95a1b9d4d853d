#pragma once
#include <cstdint>

namespace ipujax::engine {

/// How results are rounded to HALF.
struct HalfBehaviour {
  /// Result for finite values beyond the largest half. JAX's other backends give infinity, as IEEE
  /// 754 does; an IPU offers the other two.
  enum class Overflow : std::uint8_t { kInfinity, kSaturate, kNan };
  bool stochastic = false;
  Overflow overflow = Overflow::kInfinity;
  friend bool operator==(const HalfBehaviour&, const HalfBehaviour&) = default;
};

/// Which results of arithmetic end a program with an error.
struct FloatTraps {
  bool invalid = false;
  bool divide_by_zero = false;
  bool overflow = false;
  bool any() const { return invalid || divide_by_zero || overflow; }
};

/// Attribute of a step: the sum of the exceptions below that end a run.
constexpr const char* kFloatTraps = "float_traps";
enum FloatTrap : std::uint8_t { kTrapInvalid = 1, kTrapDivideByZero = 2, kTrapOverflow = 4 };
constexpr std::int64_t kAllFloatTraps = kTrapInvalid + kTrapDivideByZero + kTrapOverflow;
inline std::int64_t maskOf(const FloatTraps& traps) {
  return (traps.invalid ? kTrapInvalid : 0) + (traps.divide_by_zero ? kTrapDivideByZero : 0) +
         (traps.overflow ? kTrapOverflow : 0);
}

}  // namespace ipujax::engine
