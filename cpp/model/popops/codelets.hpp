#pragma once

#include "poplar/Graph.hpp"

namespace popops {

/// Programs for the SDK call this to load the library's vertices; the model always has its kernels.
inline void addCodelets(poplar::Graph&) {}

}  // namespace popops
