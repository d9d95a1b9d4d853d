#pragma once

#include "poplar/Graph.hpp"

/// Source: PopLibs up to SDK 1.2, include/popsys. Programs of that time find here what is now in
/// poplar: the names are the same entities, so that `using namespace` of both is not ambiguous.
namespace popsys {

/// Programs for the SDK load this library's vertices with this; the model needs none.
inline void addCodelets(poplar::Graph&) {}

}  // namespace popsys
