#include "popops/Gather.hpp"

#include <string>

#include "popops/DynamicSlice.hpp"
#include "popops/internal/Gather.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

using poplar::Tensor;

Tensor createGatherInput(poplar::Graph& graph, const poplar::Type& type,
                         const std::vector<std::size_t>& operandShape, unsigned axis,
                         GatherParams /*params*/, const poplar::DebugContext& debugContext) {
  return createSliceableTensor(graph, type, operandShape, {axis}, {1}, SlicePlan(), {},
                               debugContext);
}

Tensor createGatherInput(poplar::Graph& graph, const poplar::Type& type,
                         const std::vector<std::size_t>& inputShape,
                         const std::vector<std::size_t>& /*sliceSizes*/,
                         std::vector<unsigned> /*startIndexMap*/,
                         const poplar::DebugContext& debugContext) {
  return graph.addVariable(type, inputShape, poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor gather(poplar::Graph& graph, const Tensor& input, const Tensor& indices, unsigned axis,
              poplar::program::Sequence& prog, GatherParams /*params*/,
              const poplar::DebugContext& debugContext,
              const poplar::OptionFlags& /*optionFlags*/) {
  if (axis >= input.rank() || input.dim(axis) == 0) {
    throw poputil::poplibs_error(
        "[popops::gather] needs an axis of input with elements; got axis " + std::to_string(axis) +
        " of " + input.shapeToString() + ". Use another axis.");
  }
  internal::GatherDims dims;
  dims.index_vector_dim = indices.rank();
  dims.start_index_map = {axis};
  dims.collapsed_slice_dims = {axis};
  dims.slice_sizes.assign(input.shape().begin(), input.shape().end());
  dims.slice_sizes[axis] = 1;
  for (unsigned d = 0; d + 1 < input.rank(); ++d)
    dims.offset_dims.push_back(d < axis ? d : d + indices.rank());
  return internal::gather(graph, input, indices, dims, prog, debugContext);
}

Tensor gather(poplar::Graph& graph, const Tensor& input, const Tensor& indices,
              std::size_t indexVectorDim, const std::vector<std::size_t>& offsetDims,
              const std::vector<std::size_t>& sliceSizes,
              const std::vector<std::size_t>& collapsedSliceDims,
              const std::vector<unsigned>& startIndexMap, poplar::program::Sequence& prog,
              const poplar::DebugContext& debugContext,
              const poplar::OptionFlags& /*optionFlags*/) {
  internal::GatherDims dims;
  dims.index_vector_dim = static_cast<std::int64_t>(indexVectorDim);
  dims.offset_dims.assign(offsetDims.begin(), offsetDims.end());
  dims.slice_sizes.assign(sliceSizes.begin(), sliceSizes.end());
  dims.collapsed_slice_dims.assign(collapsedSliceDims.begin(), collapsedSliceDims.end());
  dims.start_index_map.assign(startIndexMap.begin(), startIndexMap.end());
  return internal::gather(graph, input, indices, dims, prog, debugContext);
}

}  // namespace popops
