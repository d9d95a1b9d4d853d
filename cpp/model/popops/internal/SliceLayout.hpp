#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "popops/internal/SlicePlanner.hpp"

/// Tile mappings of tables and their slices.
/// Source: PopLibs, lib/popops/DynamicSlice.cpp (createSliceableTensor, createSliceTensor).
namespace popops::internal {

/// Spreads the elements of all dimensions but `dims` over the tiles in order, as evenly as whole
/// elements allow and at least `min_grain` on each. Each keeps its elements along `dims` with it,
/// so a slice in `dims` needs no exchange, and a tile's part of it is one run of elements. Without
/// dims or elements the mapping is linear.
poplar::Tensor createSpread(poplar::Graph& graph, const poplar::Type& type,
                            const std::vector<std::size_t>& shape,
                            const std::vector<std::size_t>& dims, std::size_t min_grain,
                            const poplar::DebugContext& debugContext);

/// A table [groups, shape ...] for looking up rows along dimension `dim` of `shape`.
poplar::Tensor createPlannedTable(poplar::Graph& graph, const poplar::Type& type,
                                  std::size_t groups, const std::vector<std::size_t>& shape,
                                  std::size_t dim, const SlicePartition& partition,
                                  const poplar::DebugContext& debugContext);

/// The rows looked up: [groups, lookups, shape ...] with 1 in place of dimension `dim` of `shape`.
poplar::Tensor createPlannedSlices(poplar::Graph& graph, const poplar::Type& type,
                                   std::size_t groups, const std::vector<std::size_t>& shape,
                                   std::size_t dim, std::size_t lookups,
                                   const SlicePartition& partition,
                                   const poplar::DebugContext& debugContext);

}  // namespace popops::internal
