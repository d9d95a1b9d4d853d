#pragma once
#include <cstdint>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

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

/// popops::gather with batching dimensions, and indices of any integer type: slices of `operand`,
/// laid out as XLA's gather says. Start indices are clamped so that each slice lies inside. On
/// hardware: popops::gather, with batching dimensions as further indices.
poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& operand,
                      const poplar::Tensor& indices, const GatherDims& dims,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});

}  // namespace popx
