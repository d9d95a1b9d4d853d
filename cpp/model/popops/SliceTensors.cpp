// Tensors for slices, with a plan and without; source: PopLibs, lib/popops/DynamicSlice.cpp.
#include <algorithm>
#include <numeric>
#include <string>

#include "popops/DynamicSlice.hpp"
#include "popops/internal/SliceLayout.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using Dims = std::vector<std::size_t>;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;

constexpr unsigned kLeastIndices = 32;  // on a tile

void checkDims(const char* function, const Dims& shape, const Dims& dims) {
  for (const auto d : dims) {
    if (d < shape.size() && std::ranges::count(dims, d) == 1) continue;
    throw poputil::poplibs_error(
        "[popops::" + std::string(function) +
        "] needs each sliced dimension once and within the shape; got dimension " +
        std::to_string(d) + " of a rank-" + std::to_string(shape.size()) +
        " shape. Name each dimension once.");
  }
}

void checkSizes(const char* function, const Dims& shape, const Dims& dims, const Dims& sizes) {
  checkDims(function, shape, dims);
  bool fit = sizes.size() == dims.size();
  for (std::size_t i = 0; fit && i < dims.size(); ++i) fit = sizes[i] <= shape[dims[i]];
  if (fit) return;
  throw poputil::poplibs_error("[popops::" + std::string(function) +
                               "] needs a size within the shape for each sliced dimension; got " +
                               std::to_string(sizes.size()) + " sizes for " +
                               std::to_string(dims.size()) + " dimensions. Check dims and sizes.");
}

void checkPlanned(const char* function, const Dims& dims, const Dims& sizes) {
  if (dims.size() == 1 && sizes == Dims{1}) return;
  throw poputil::poplibs_error("[popops::" + std::string(function) +
                               "] needs one sliced dimension and slices of 1 for a plan; got " +
                               std::to_string(dims.size()) +
                               " dimensions. Pass SlicePlan() for other slices.");
}

Dims sliceShape(Dims shape, const Dims& dims, const Dims& sizes, std::size_t slices) {
  for (std::size_t i = 0; i < dims.size(); ++i) shape[dims[i]] = sizes[i];
  shape.insert(shape.begin(), slices);
  return shape;
}

/// Indices into `dims`. The dimension of which slices take the smallest part comes first, so that
/// the next ones have less to do.
std::vector<std::size_t> sliceOrder(const Dims& shape, const Dims& dims, const Dims& sizes) {
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return sizes[a] * shape[dims[b]] < sizes[b] * shape[dims[a]];
  });
  return order;
}

}  // namespace

Tensor createSliceableTensor(Graph& graph, const poplar::Type& type, const Dims& shape,
                             const Dims& dims, const Dims& /*sizes*/, std::size_t minGrainSize,
                             const DebugContext& debugContext) {
  checkDims("createSliceableTensor", shape, dims);
  return internal::createSpread(graph, type, shape, dims, minGrainSize, debugContext);
}

Tensor createSliceableTensor(Graph& graph, const poplar::Type& type, const Dims& shape,
                             const Dims& dims, const Dims& sizes, const SlicePlan& plan,
                             const OptionFlags& /*options*/, const DebugContext& debugContext) {
  if (!plan.data()) return createSliceableTensor(graph, type, shape, dims, sizes, 0, debugContext);
  checkSizes("createSliceableTensor", shape, dims, sizes);
  checkPlanned("createSliceableTensor", dims, sizes);
  return internal::createPlannedTable(graph, type, 1, shape, dims[0], plan.data()->partition,
                                      debugContext)
      .squeeze({0});
}

Tensor createGroupedSliceableTensor(Graph& graph, const poplar::Type& type, std::size_t groupSize,
                                    const Dims& shape, const Dims& dims, const Dims& sizes,
                                    const SlicePlan& plan, const OptionFlags& /*options*/,
                                    const DebugContext& debugContext) {
  checkSizes("createGroupedSliceableTensor", shape, dims, sizes);
  if (plan.data()) {
    checkPlanned("createGroupedSliceableTensor", dims, sizes);
    return internal::createPlannedTable(graph, type, groupSize, shape, dims[0],
                                        plan.data()->partition, debugContext);
  }
  Dims whole = shape;
  whole.insert(whole.begin(), groupSize);
  Dims behind = dims;
  for (auto& d : behind) ++d;
  return internal::createSpread(graph, type, whole, behind, 0, debugContext);
}

Tensor createSliceTensor(Graph& graph, const Tensor& t, const Dims& dims, const Dims& sizes,
                         std::size_t numIndices, const DebugContext& debugContext) {
  if (numIndices != 1 || t.numElements() == 0)
    return createSliceTensor(graph, t.elementType(), t.shape(), dims, sizes, numIndices,
                             SlicePlan(), {}, debugContext);
  checkSizes("createSliceTensor", t.shape(), dims, sizes);
  Tensor first = t;
  for (std::size_t i = 0; i < dims.size(); ++i)
    first = first.slice(0, sizes[i], static_cast<unsigned>(dims[i]));
  const Tensor made = graph.addVariable(t.elementType(), first.shape(), debugContext);
  graph.setTileMapping(made, graph.getTileMapping(first));
  return made.expand({0});
}

Tensor createSliceTensor(Graph& graph, const poplar::Type& type, const Dims& shape,
                         const Dims& dims, const Dims& sizes, std::size_t numIndices,
                         const SlicePlan& plan, const OptionFlags& /*options*/,
                         const DebugContext& debugContext) {
  checkSizes("createSliceTensor", shape, dims, sizes);
  if (plan.data()) {
    checkPlanned("createSliceTensor", dims, sizes);
    return internal::createPlannedSlices(graph, type, 1, shape, dims[0], numIndices,
                                         plan.data()->partition, debugContext)
        .squeeze({0});
  }
  Dims along{0};
  for (const auto d : dims) along.push_back(d + 1);
  return internal::createSpread(graph, type, sliceShape(shape, dims, sizes, numIndices), along, 0,
                                debugContext);
}

Tensor createGroupedSliceTensor(Graph& graph, const poplar::Type& type, std::size_t groupSize,
                                const Dims& shape, const Dims& dims, const Dims& sizes,
                                std::size_t numIndices, const SlicePlan& plan,
                                const OptionFlags& options, const DebugContext& debugContext) {
  checkSizes("createGroupedSliceTensor", shape, dims, sizes);
  if (plan.data()) {
    checkPlanned("createGroupedSliceTensor", dims, sizes);
    return internal::createPlannedSlices(graph, type, groupSize, shape, dims[0], numIndices,
                                         plan.data()->partition, debugContext);
  }
  return createSliceTensor(graph, type, shape, dims, sizes, groupSize * numIndices, plan, options,
                           debugContext)
      .reshapePartial(0, 1, {groupSize, numIndices});
}

Tensor createIndicesTensor(Graph& graph, const Dims& dims, std::size_t numIndices,
                           const SlicePlan& /*plan*/, const OptionFlags& /*options*/,
                           const DebugContext& debugContext) {
  const Tensor indices =
      graph.addVariable(poplar::UNSIGNED_INT, {numIndices, dims.size()}, debugContext);
  poputil::mapTensorLinearly(graph, indices, kLeastIndices, 1);
  return indices;
}

Tensor createGroupedIndicesTensor(Graph& graph, std::size_t groupSize, const Dims& dims,
                                  std::size_t numIndices, const SlicePlan& plan,
                                  const OptionFlags& options, const DebugContext& debugContext) {
  return createIndicesTensor(graph, dims, groupSize * numIndices, plan, options, debugContext)
      .reshapePartial(0, 1, {groupSize, numIndices});
}

Tensor createSliceableTensorFromSlice(Graph& graph, const Tensor& s, const Dims& dims,
                                      const Dims& numSlices, const DebugContext& debugContext) {
  checkDims("createSliceableTensorFromSlice", s.shape(), dims);
  if (numSlices.size() != dims.size())
    throw poputil::poplibs_error(
        "[popops::createSliceableTensorFromSlice] needs a number of slices for each of " +
        std::to_string(dims.size()) + " dimensions; got " + std::to_string(numSlices.size()) +
        ". Pass one for each.");
  Dims whole = s.shape();
  Dims sizes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    sizes.push_back(s.dim(static_cast<unsigned>(dims[i])));
    whole[dims[i]] *= numSlices[i];
  }
  // Copies come first, in the order in which they are sliced; then each joins its dimension.
  const auto order = sliceOrder(whole, dims, sizes);
  Dims shape;
  std::size_t copies = 1;
  for (const auto i : order) {
    shape.push_back(numSlices[i]);
    copies *= numSlices[i];
  }
  for (const auto n : s.shape()) shape.push_back(n);
  Tensor t = graph.addVariable(s.elementType(), shape, debugContext);
  const auto of_slice = graph.getTileMapping(s);
  Graph::TileToTensorMapping mapping(of_slice.size());
  for (std::size_t copy = 0; copy < copies; ++copy)
    for (std::size_t tile = 0; tile < of_slice.size(); ++tile)
      for (const auto& region : of_slice[tile])
        mapping[tile].emplace_back(copy * s.numElements() + region.begin(),
                                   copy * s.numElements() + region.end());
  graph.setTileMapping(t, mapping);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<unsigned>(order.size() - i + dims[order[i]]);
    t = t.dimRoll(0, at - 1).flatten(at - 1, at + 1);
  }
  return t;
}

}  // namespace popops
