#pragma once
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

/// For the library: where the slices of a gather, and the windows of a scatter, begin.
namespace popx::starts {

/// The indices in a type of 32 bits or more, with the index vector in dimension `vectorDim`, which
/// is added if implied.
poplar::Tensor wide(poplar::Graph& graph, const poplar::Tensor& indices, unsigned vectorDim,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext);

/// Clamps each index between 0 and the number in `most` for its place in the index vector.
poplar::Tensor clamped(poplar::Graph& graph, const poplar::Tensor& wide, unsigned vectorDim,
                       const std::vector<int>& most, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext);

/// UNSIGNED_INT indices, with one more element in the index vector for each batching dimension: 0,
/// 1, 2 ... along it.
poplar::Tensor withBatches(poplar::Graph& graph, const poplar::Tensor& clamped, unsigned vectorDim,
                           const std::vector<std::int64_t>& batchingDims,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext);

}  // namespace popx::starts
