#pragma once
#include <cstdint>

#include "poplar/Graph.hpp"

namespace popx {

/// Whether the elements of two tensors of one shape lie in memory in the same way, so that a step
/// reads both in the same order. Tensors of several variables count as row-major: what needs one
/// piece of memory copies them to one first. On hardware, which shows no strides: whether both are
/// row-major.
bool sameLayout(const poplar::Tensor& a, const poplar::Tensor& b);

/// Variables made from now on belong to a layout group. Those that PopLibs functions spread over
/// fewer tiles than the graph has begin at one tile for each group, and groups begin all around the
/// IPU; those of group 0 begin at tile 0. Values that meet element by element belong in one group.
/// On hardware it does nothing: PopLibs' functions place their variables themselves.
void setLayoutGroup(poplar::Graph& graph, std::uint32_t group);

}  // namespace popx
