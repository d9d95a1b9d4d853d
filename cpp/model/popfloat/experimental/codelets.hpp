#pragma once

#include "poplar/Graph.hpp"

namespace popfloat {
namespace experimental {

/// Programs for the SDK load this library's vertices so; the model's kernels are always there.
inline void addCodelets(poplar::Graph&) {}

}  // namespace experimental
}  // namespace popfloat
