#pragma once

#include "poplar/Graph.hpp"

namespace poprand {

/// Programs for the SDK load this library's vertices with this; the model needs none.
inline void addCodelets(poplar::Graph&) {}

}  // namespace poprand
