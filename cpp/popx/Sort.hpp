#pragma once
#include "popx/Native.hpp"

namespace popx {

/// popops::sort of several operands by any comparator.
using native::FloatOrder;
using native::SortKey;
using popops::internal::sort;

}  // namespace popx
