#pragma once

#include "poplar/Graph.hpp"

namespace poprand {

/// Programs for the SDK load this library's vertices so; the model's kernels are always there.
inline void addCodelets(poplar::Graph&) {}

}  // namespace poprand
