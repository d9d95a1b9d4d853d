#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

/// Conversions of 8-bit floats. For `metadata` and results see engine/Quarter.hpp, whose functions
/// are the definition.
namespace ipujax::engine {

struct QuarterLoops {
  /// Infinities give NaN, and so do values that are too large if `nan_on_overflow`.
  void (*from_floats)(const float* in, std::uint8_t* out, std::int64_t n, std::uint8_t metadata,
                      bool nan_on_overflow);
  void (*from_halves)(const std::uint16_t* in, std::uint8_t* out, std::int64_t n,
                      std::uint8_t metadata, bool nan_on_overflow);
  void (*to_floats)(const std::uint8_t* in, float* out, std::int64_t n, std::uint8_t metadata);
  void (*to_halves)(const std::uint8_t* in, std::uint16_t* out, std::int64_t n,
                    std::uint8_t metadata);
};

IPUJAX_DECLARE_SIMD(extern const QuarterLoops kQuarterLoops)

/// The loops for this CPU.
inline const QuarterLoops& quarterLoops() {
  static const QuarterLoops& picked = IPUJAX_PICK(kQuarterLoops);
  return picked;
}

}  // namespace ipujax::engine
