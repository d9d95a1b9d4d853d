#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

/// poprand::dropout of one block of a larger array, with the mask that the whole array would have:
/// blocks on several devices together equal poprand::shapedDropout of the whole, for equal seeds.
/// `starts`: INT or UNSIGNED_INT [rank], where the block begins along each dimension. `maskShape`:
/// that of the whole mask, with 1 where it broadcasts. Elements beyond the whole array are
/// undefined. On tiles: makes the whole mask and slices the block from it.
poplar::Tensor dropoutBlock(poplar::Graph& graph, const poplar::Tensor& seed,
                            const poplar::Tensor& input, const poplar::Tensor& starts,
                            const std::vector<std::size_t>& maskShape, double keepProbability,
                            double scale, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {});

}  // namespace popx
