#pragma once
#include "popx/Native.hpp"

namespace popx {

/// float64, which Poplar has no type for: programs that emulate 64-bit types hold it so. On an IPU
/// it is two words and every operation on it a call of software arithmetic.
inline constexpr poplar::Type DOUBLE{native::ElementType::kDouble};

}  // namespace popx
