#pragma once

#include "poplar/Graph.hpp"

namespace popsparse {

/// Programs for the SDK load this library's vertices so; the model composes PopLibs functions.
inline void addCodelets(poplar::Graph&) {}

}  // namespace popsparse
