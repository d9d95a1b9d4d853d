#pragma once
#include "popx/Native.hpp"

namespace popx {

/// popops::gather with batching dimensions.
using popops::internal::gather;
using popops::internal::GatherDims;

}  // namespace popx
