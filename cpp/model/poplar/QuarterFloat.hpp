#pragma once
#include <cmath>
#include <cstdint>

#include "poplar/HalfFloat.hpp"

/// 8-bit floats in codelets. Source of the formats: Noune et al., "8-bit numerical formats for deep
/// neural networks" (arXiv:2206.02915): one NaN (0x80), no infinity, biases 16 and 8.
struct quarter {
  std::uint8_t bits;
};

/// Format and scale: a value is the number in the bits times 2^scale.
struct quarter_metadata {
  enum format : std::uint8_t { f152 = 0, f143 = 1 };
  format fmt;
  signed char scale;
};

/// The byte that tiles store: the format in the highest bit, the scale in the lowest six.
using MetadataType = std::uint8_t;

/// Decodes a tile's metadata byte. A template, so that a codelet's own function of this name takes
/// precedence.
template <class Metadata, class = decltype(MetadataType(*static_cast<const Metadata*>(nullptr)))>
quarter_metadata unpackMetadata(const Metadata* packed) {
  const int byte = *packed;
  return {byte & 0x80 ? quarter_metadata::f143 : quarter_metadata::f152,
          static_cast<signed char>((byte & 0x3f) - 2 * (byte & 0x20))};
}

namespace poplar {

using ::unpackMetadata;

inline float toFloat(quarter q, quarter_metadata metadata) {
  if (q.bits == 0x80) return __builtin_nanf("");
  const int fraction_bits = metadata.fmt == quarter_metadata::f143 ? 3 : 2;
  const int bias = metadata.fmt == quarter_metadata::f143 ? 8 : 16;
  const int exponent = (q.bits & 0x7f) >> fraction_bits;
  const int fraction = q.bits & ((1 << fraction_bits) - 1);
  const int significand = exponent == 0 ? fraction : fraction | 1 << fraction_bits;
  const float value =
      std::ldexp(static_cast<float>(significand),
                 (exponent == 0 ? 1 : exponent) - bias - fraction_bits + metadata.scale);
  return q.bits & 0x80 ? -value : value;
}

inline half toHalf(quarter q, quarter_metadata metadata) { return half(toFloat(q, metadata)); }

/// Rounds to nearest even; too large values become the largest one, NaN and infinity become NaN.
inline quarter toQuarter(float value, quarter_metadata metadata) {
  if (!std::isfinite(value)) return {0x80};
  const int fraction_bits = metadata.fmt == quarter_metadata::f143 ? 3 : 2;
  const int bias = metadata.fmt == quarter_metadata::f143 ? 8 : 16;
  const float scaled = std::ldexp(std::fabs(value), -metadata.scale);
  int exponent = 0;
  std::frexp(scaled, &exponent);
  const int least = 1 - bias;
  const int unit = (exponent - 1 < least ? least : exponent - 1) - fraction_bits;
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(scaled, -unit)));
  int bits = steps;
  if (scaled != 0 && exponent - 1 >= least)
    bits = ((exponent - 1 + bias) << fraction_bits) + steps - (1 << fraction_bits);
  if (scaled > 0x1p20f || bits > 0x7f) bits = 0x7f;
  if (bits == 0) return {0};
  return {static_cast<std::uint8_t>(bits | (std::signbit(value) ? 0x80 : 0))};
}

/// Sets the format of conversions. No effect on the model: each conversion names its own.
inline void setQuarterConfig(quarter_metadata) {}

}  // namespace poplar
