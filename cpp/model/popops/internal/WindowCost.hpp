#pragma once
#include <cstdint>

#include "engine/Cost.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

namespace popops::internal {

/// What a lookup or an update does to each slice of a table.
enum class SliceWork { kRead, kWrite, kAccumulate };

/// The size of a problem: a table of `rows` slices of `elements`, `lookups` indices of
/// `coordinates`.
struct SliceProblem {
  std::uint64_t rows = 1;
  std::uint64_t elements = 1;
  std::uint64_t lookups = 1;
  std::uint64_t coordinates = 1;
  SliceWork work = SliceWork::kRead;
  double extra_cycles_per_vector = 0;  ///< if the update is an expression
};

/// Cycles of the worker that looks at `lookups` indices, of which `in_range` are among its rows.
/// Formulas: popops: popopsCycleEstimators.cpp (MultiSlice, MultiUpdate, MultiUpdateAdd).
double sliceVertexCycles(SliceWork work, std::uint64_t elements, std::uint64_t lookups,
                         std::uint64_t in_range, std::uint64_t vector, std::uint64_t element_bytes,
                         double extra_cycles_per_vector = 0);

/// Cycles of a tile that copies `regions` regions of `elements` at a run-time offset, by all
/// workers. Formula: popops: popopsCycleEstimators.cpp (DynamicSlice1d).
double dynamicSliceCycles(std::uint64_t elements, std::uint64_t regions,
                          std::uint64_t element_bytes, std::uint64_t workers);

/// Splits columns, rows and lookups over the tiles (as popops' embedding planner does) and returns
/// the cheapest plan's cost. `table` is where the table lies; `slices` where the slices go or come
/// from.
ipujax::engine::Cost sliceCost(const poplar::Graph& graph, const poplar::Tensor& table,
                               const poplar::Tensor& slices, const SliceProblem& problem);

/// One slice at run-time offsets, of a tensor that is spread so that every tile holds a part of
/// every slice (createSliceableTensor). `slots`: possible starts in the sliced dimensions.
ipujax::engine::Cost dynamicSliceCost(const poplar::Graph& graph, const poplar::Tensor& slice,
                                      std::uint64_t slots, std::uint64_t coordinates);

}  // namespace popops::internal
