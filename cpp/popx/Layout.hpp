#pragma once
#include <cstdint>

#include "poplar/Graph.hpp"

namespace popx {

/// Whether the elements of two tensors of one shape lie in memory in the same way, so that a step
/// reads both in the same order. Tensors of several variables count as row-major: steps that need
/// contiguous memory copy them first. On hardware, which shows no strides: whether both are
/// row-major.
bool sameLayout(const poplar::Tensor& a, const poplar::Tensor& b);

/// Puts variables made from now on into a layout group. Those that PopLibs functions spread over
/// fewer tiles than the graph has begin at one tile per group, and groups begin at different tiles;
/// group 0 begins at tile 0. Values that are combined elementwise belong in one group. On hardware
/// it does nothing: PopLibs' functions place their variables themselves.
void setLayoutGroup(poplar::Graph& graph, std::uint32_t group);

}  // namespace popx
