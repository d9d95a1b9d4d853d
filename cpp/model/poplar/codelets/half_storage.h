#pragma once
#include <cstdint>

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

/// The name for host code, whatever `half` is.
using IeeeHalf = half_storage;

}  // namespace poplar
