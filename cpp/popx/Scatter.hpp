#pragma once
#include "popx/Native.hpp"

namespace popx {

/// popops::scatter with batching dimensions and a computation.
using popops::internal::scatter;
using popops::internal::ScatterDims;

}  // namespace popx
