#pragma once

#include "poplar/Graph.hpp"

namespace popfloat {
namespace experimental {

/// Programs for the SDK load this library's vertices with this; the model needs none.
inline void addCodelets(poplar::Graph&) {}

}  // namespace experimental
}  // namespace popfloat
