#pragma once
#include "popx/Expr.hpp"
#include "popx/Native.hpp"

namespace popx {

/// popops::map of several expressions in one step.
using popops::internal::map;
using popops::internal::mapWithOutputs;

}  // namespace popx
