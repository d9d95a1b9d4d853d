#include "popx/Gather.hpp"

#include <algorithm>

#include "popops/Gather.hpp"
#include "popx/hardware/StartIndices.hpp"

namespace popx {

poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& operand,
                      const poplar::Tensor& indices, const GatherDims& dims,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  std::vector<int> most;
  for (const auto d : dims.start_index_map)
    most.push_back(static_cast<int>(operand.dim(static_cast<unsigned>(d))) -
                   static_cast<int>(dims.slice_sizes.at(static_cast<std::size_t>(d))));
  const auto vector_dim = static_cast<unsigned>(dims.index_vector_dim);
  poplar::Tensor starts = starts::wide(graph, indices, vector_dim, prog, debugContext);
  starts = starts::clamped(graph, starts, vector_dim, most, prog, debugContext);
  starts = starts::withBatches(graph, starts, vector_dim, dims.start_indices_batching_dims, prog,
                               debugContext);
  auto collapsed = dims.collapsed_slice_dims;
  auto map = dims.start_index_map;
  for (const auto d : dims.operand_batching_dims) {
    map.push_back(d);
    collapsed.push_back(d);
  }
  std::ranges::sort(collapsed);
  const auto sizes = [](const std::vector<std::int64_t>& v) {
    return std::vector<std::size_t>(v.begin(), v.end());
  };
  return popops::gather(graph, operand, starts, vector_dim, sizes(dims.offset_dims),
                        sizes(dims.slice_sizes), sizes(collapsed),
                        std::vector<unsigned>(map.begin(), map.end()), prog, debugContext);
}

}  // namespace popx
