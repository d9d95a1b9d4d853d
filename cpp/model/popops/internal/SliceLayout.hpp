#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "popops/internal/SlicePlanner.hpp"

/// Where tables and slices of them lie.
/// Source: PopLibs, lib/popops/DynamicSlice.cpp (createSliceableTensor, createSliceTensor).
namespace popops::internal {

/// The elements of all dimensions but `dims` are spread over the tiles in order, as evenly as whole
/// ones allow and at least `min_grain` on each, and each with all that lies along `dims`. So a
/// slice in `dims` needs no exchange, and what a tile has of it is one run of elements. Without
/// dims or elements: linear.
poplar::Tensor createSpread(poplar::Graph& graph, const poplar::Type& type,
                            const std::vector<std::size_t>& shape,
                            const std::vector<std::size_t>& dims, std::size_t min_grain,
                            const poplar::DebugContext& debugContext);

/// [groups, shape ...] of which rows along dimension `dim` of `shape` are looked up.
poplar::Tensor createPlannedTable(poplar::Graph& graph, const poplar::Type& type,
                                  std::size_t groups, const std::vector<std::size_t>& shape,
                                  std::size_t dim, const SlicePartition& partition,
                                  const poplar::DebugContext& debugContext);

/// [groups, lookups, shape ...] with 1 in place of dimension `dim` of `shape`: what is looked up.
poplar::Tensor createPlannedSlices(poplar::Graph& graph, const poplar::Type& type,
                                   std::size_t groups, const std::vector<std::size_t>& shape,
                                   std::size_t dim, std::size_t lookups,
                                   const SlicePartition& partition,
                                   const poplar::DebugContext& debugContext);

}  // namespace popops::internal
