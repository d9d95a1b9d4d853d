#include "popx/Gather.hpp"

#include "popx/Native.hpp"

namespace popx {

poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& operand,
                      const poplar::Tensor& indices, const GatherDims& dims,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const popops::internal::GatherDims same{dims.offset_dims,
                                          dims.collapsed_slice_dims,
                                          dims.operand_batching_dims,
                                          dims.start_indices_batching_dims,
                                          dims.start_index_map,
                                          dims.index_vector_dim,
                                          dims.slice_sizes};
  return popops::internal::gather(graph, operand, indices, same,
                                  popops::internal::GatherLayout::kLinear, prog, debugContext);
}

}  // namespace popx
