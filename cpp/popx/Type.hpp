#pragma once
#include "popx/Native.hpp"

namespace popx {

/// float64, for which Poplar has no type: programs that emulate 64-bit types use this. On an IPU it
/// is two words, and every operation on it calls software arithmetic.
inline constexpr poplar::Type DOUBLE{native::ElementType::kDouble};

}  // namespace popx
