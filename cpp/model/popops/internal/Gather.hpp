#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/Cost.hpp"
#include "engine/kernels/move/CopyWindows.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// The dimension numbers of an XLA gather.
struct GatherDims {
  std::vector<std::int64_t> offset_dims;
  std::vector<std::int64_t> collapsed_slice_dims;
  std::vector<std::int64_t> operand_batching_dims;
  std::vector<std::int64_t> start_indices_batching_dims;
  std::vector<std::int64_t> start_index_map;
  std::int64_t index_vector_dim = 0;
  std::vector<std::int64_t> slice_sizes;
};

/// Where the result of a gather lies.
enum class GatherLayout {
  kLinear,   ///< evenly over all tiles
  kBySlice,  ///< as in PopLibs: a tile has the same elements of every slice
};

/// Slices of `operand` at run-time start indices, laid out as XLA's gather says; start indices are
/// clamped so that each slice lies inside. Indices may be of any integer type. On tiles: a
/// multiSlice over the dimensions of start_index_map (popops' embedding plans).
poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& operand,
                      const poplar::Tensor& indices, const GatherDims& dims, GatherLayout layout,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});

/// The attributes of the kernels that walk windows; see engine/kernels/move/CopyWindows.hpp.
struct WindowSpec {
  std::vector<std::int64_t> window, map, batching, sizes;
  ipujax::engine::Outside outside = ipujax::engine::Outside::kClamp;
  void addTo(ipujax::engine::Attributes& attributes) const;
};

/// The dimensions of a tensor of this rank that are in neither list.
std::vector<std::int64_t> otherDims(std::size_t rank, const std::vector<std::int64_t>& dims,
                                    const std::vector<std::int64_t>& more = {});

/// For each batch dimension of the canonical indices, the operand's dimension that it matches, or
/// -1. The batching dimensions are those of the given indices and the matching ones of the operand.
std::vector<std::int64_t> batchingOf(std::size_t num_batch, std::int64_t index_vector_dim,
                                     const std::vector<std::int64_t>& indices_batching_dims,
                                     const std::vector<std::int64_t>& operand_batching_dims);

/// Emits kernel `name` ("popx.gather", "popops.dynamic_slice", "popops.multi_slice"): out[b...,
/// w...] = operand window at indices[b..., :].
void gatherWindows(poplar::Graph& graph, const std::string& name, const poplar::Tensor& operand,
                   const poplar::Tensor& indices, const poplar::Tensor& out, const WindowSpec& spec,
                   const ipujax::engine::Cost& cost, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext);

/// The start indices as [batch..., K]: the index vector moved last, or added if it is implied.
poplar::Tensor canonicalIndices(const poplar::Tensor& indices, std::int64_t index_vector_dim);

}  // namespace popops::internal
