#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

/// Floats of 8 bits. `metadata` is their format (in the highest bit: 1 for F143, 0 for F152) and
/// the power of two that they are scaled by (a signed number in the lowest six bits). Source of the
/// formats: Noune et al., "8-bit numerical formats for deep neural networks" (arXiv:2206.02915).
namespace ipujax::engine {

constexpr std::uint8_t kQuarterNan = 0x80;

struct QuarterLayout {
  explicit constexpr QuarterLayout(std::uint8_t metadata)
      : fraction(metadata & 0x80 ? 3 : 2),
        min_exponent(metadata & 0x80 ? -7 : -15),
        largest(metadata & 0x80 ? 240 : 57344),
        scale((metadata & 0x3f) - 2 * (metadata & 0x20)) {}
  int fraction;      ///< bits
  int min_exponent;  ///< of the smallest normal number
  double largest;
  int scale;
};

/// Rounds to nearest even. NaN gives NaN; overflow gives NaN or the largest value.
inline std::uint8_t toQuarter(std::uint8_t metadata, double value, bool nan_on_overflow) {
  if (std::isnan(value)) return kQuarterNan;
  const QuarterLayout layout(metadata);
  const double scaled = std::ldexp(std::abs(value), -layout.scale);
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  // In units of the last place, magnitudes have the same order as their bits.
  const int exponent = scaled > 0 && std::isfinite(scaled)
                           ? std::max(std::ilogb(scaled), layout.min_exponent)
                           : layout.min_exponent;
  const double units = std::nearbyint(std::ldexp(scaled, layout.fraction - exponent));
  if (std::ldexp(units, exponent - layout.fraction) > layout.largest)
    return nan_on_overflow ? kQuarterNan : static_cast<std::uint8_t>(sign | 0x7f);
  const auto bits = static_cast<unsigned>(units) +
                    (static_cast<unsigned>(exponent - layout.min_exponent) << layout.fraction);
  return bits == 0 ? 0 : static_cast<std::uint8_t>(sign | bits);
}

inline double fromQuarter(std::uint8_t metadata, std::uint8_t bits) {
  if (bits == kQuarterNan) return std::numeric_limits<double>::quiet_NaN();
  const QuarterLayout layout(metadata);
  const int magnitude = bits & 0x7f;
  const int exponent = magnitude >> layout.fraction;
  const int fraction = magnitude & ((1 << layout.fraction) - 1);
  const int units = exponent ? fraction + (1 << layout.fraction) : fraction;
  const int power = layout.min_exponent + std::max(exponent - 1, 0) - layout.fraction;
  const double value = std::ldexp(units, power + layout.scale);
  return bits & 0x80 ? -value : value;
}

}  // namespace ipujax::engine
