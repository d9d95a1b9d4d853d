#include "popfloat/experimental/CastToHalf.hpp"

#include "engine/Half.hpp"

namespace popfloat::experimental {

std::uint16_t singleToHalf(float value, bool enNanoo) {
  constexpr std::uint16_t kInfinity = 0x7c00;
  constexpr std::uint16_t kQuietBit = 0x0200;
  const std::uint16_t bits = ipujax::engine::floatToHalf(value);
  const bool overflows = (bits & 0x7fff) == kInfinity;
  return enNanoo && overflows ? static_cast<std::uint16_t>(bits | kQuietBit) : bits;
}

float halfToSingle(std::uint16_t ihalf) { return ipujax::engine::halfToFloat(ihalf); }

}  // namespace popfloat::experimental
