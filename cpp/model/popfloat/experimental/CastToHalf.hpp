#pragma once
#include <cstdint>

namespace popfloat {
namespace experimental {

/// The bits of a half, rounded to nearest even; too large values become infinity, or NaN with
/// `enNanoo`.
std::uint16_t singleToHalf(float value, bool enNanoo = false);
float halfToSingle(std::uint16_t ihalf);

}  // namespace experimental
}  // namespace popfloat
