#pragma once
#include <cstdint>

namespace poplar {

/// What counts a hardware loop: at most 4095 iterations.
using rptsize_t = std::uint16_t;

}  // namespace poplar
