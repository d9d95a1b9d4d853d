#include "popops/Gather.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Expr.hpp"
#include "popops/internal/Gather.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

using poplar::Tensor;

namespace {

/// The start indices, with 0 for each one whose window does not lie inside `input`.
Tensor insideOrZero(poplar::Graph& graph, const Tensor& input, const Tensor& indices,
                    const internal::GatherDims& dims, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext) {
  const auto vector_dim = static_cast<unsigned>(dims.index_vector_dim);
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < dims.start_index_map.size(); ++i) {
    const auto d = static_cast<unsigned>(dims.start_index_map[i]);
    const auto last = static_cast<unsigned>(
        input.dim(d) - static_cast<std::size_t>(dims.slice_sizes[static_cast<std::size_t>(d)]));
    const Tensor part =
        vector_dim == indices.rank() ? indices : indices.slice(i, i + 1, vector_dim);
    const auto isInside = expr::PlaceHolder(1) <= expr::Const(last);
    parts.push_back(map(graph, expr::Select(expr::PlaceHolder(1), expr::Const(0U), isInside),
                        {part.reinterpret(poplar::UNSIGNED_INT)}, prog, debugContext));
  }
  return vector_dim == indices.rank() ? parts[0] : concat(parts, vector_dim);
}

/// Whether insideOrZero can read these; internal::gather reports the errors of others.
bool areIndices(const Tensor& input, const Tensor& indices, const internal::GatherDims& dims) {
  const auto vector_dim = static_cast<std::size_t>(dims.index_vector_dim);
  const bool is_int =
      indices.elementType() == poplar::INT || indices.elementType() == poplar::UNSIGNED_INT;
  if (!is_int || indices.numElements() == 0 || vector_dim > indices.rank() ||
      dims.start_index_map.empty() || dims.slice_sizes.size() != input.rank() ||
      dims.start_index_map.size() !=
          (vector_dim == indices.rank() ? 1 : indices.dim(static_cast<unsigned>(vector_dim))))
    return false;
  return std::ranges::all_of(dims.start_index_map, [&](auto d) {
    const auto at = static_cast<std::size_t>(d);
    return at < input.rank() &&
           static_cast<std::size_t>(dims.slice_sizes[at]) <= input.dim(static_cast<unsigned>(at));
  });
}

/// A permutation of `rank` dimensions that swaps the first one and `axis`.
std::vector<unsigned> swapped(unsigned rank, unsigned axis) {
  std::vector<unsigned> order(rank);
  std::iota(order.begin(), order.end(), 0U);
  std::swap(order[0], order[axis]);
  return order;
}

}  // namespace

Tensor createGatherInput(poplar::Graph& graph, const poplar::Type& type,
                         const std::vector<std::size_t>& operandShape, unsigned axis,
                         GatherParams params, const poplar::DebugContext& debugContext) {
  if (axis >= operandShape.size() || params.maxElementsPerTile == 0)
    throw poputil::poplibs_error(
        "[popops::createGatherInput] needs an axis of the shape and maxElementsPerTile of 1 or "
        "more; got axis " +
        std::to_string(axis) + " of " + std::to_string(operandShape.size()) + " dimensions and " +
        std::to_string(params.maxElementsPerTile) + ". Use another axis or number.");
  std::vector<std::size_t> shape = operandShape;
  if (shape[axis] <= params.maxElementsPerTile) {
    // Swapping the axis with the first dimension also decides the order of the others.
    std::swap(shape[0], shape[axis]);
    return createSliceableTensor(graph, type, shape, {0}, {1}, 0, debugContext)
        .dimShuffle(swapped(static_cast<unsigned>(shape.size()), axis));
  }
  // The two entries of a pair lie on different tiles.
  shape[axis] = (shape[axis] + 1) / 2;
  shape.insert(shape.begin() + axis + 1, 2);
  return createGatherInput(graph, type, shape, axis, params, debugContext)
      .flatten(axis, axis + 2)
      .slice(0, operandShape[axis], axis);
}

Tensor createGatherInput(poplar::Graph& graph, const poplar::Type& type,
                         const std::vector<std::size_t>& inputShape,
                         const std::vector<std::size_t>& /*sliceSizes*/,
                         std::vector<unsigned> startIndexMap,
                         const poplar::DebugContext& debugContext) {
  std::ranges::sort(startIndexMap);
  return createSliceableTensor(graph, type, inputShape,
                               {startIndexMap.begin(), startIndexMap.end()}, {}, 0, debugContext);
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
  return internal::gather(graph, input, indices, dims, internal::GatherLayout::kBySlice, prog,
                          debugContext);
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
  const Tensor starts = areIndices(input, indices, dims)
                            ? insideOrZero(graph, input, indices, dims, prog, debugContext)
                            : indices;
  return internal::gather(graph, input, starts, dims, internal::GatherLayout::kBySlice, prog,
                          debugContext);
}

}  // namespace popops
