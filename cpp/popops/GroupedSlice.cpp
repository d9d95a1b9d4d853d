#include "popops/DynamicSlice.hpp"
#include "poputil/exceptions.hpp"

// Slices of tables that lie side by side, group by group.
namespace popops {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using Dims = std::vector<std::size_t>;

void checkGroups(const char* where, const Tensor& t, const Tensor& offsets, const Tensor* s) {
  const std::size_t groups = t.rank() ? t.dim(0) : 0;
  const bool agree = offsets.rank() && offsets.dim(0) == groups && groups > 0 &&
                     (!s || (s->rank() && s->dim(0) == groups));
  if (agree) return;
  throw poputil::poplibs_error(std::string("[popops::") + where +
                               "] needs tensors of as many groups; got " + t.shapeToString() +
                               " and offsets " + offsets.shapeToString() +
                               ". Put the groups in dimension 0 of each.");
}

}  // namespace

Tensor createGroupedSliceableTensor(Graph& graph, const poplar::Type& type, std::size_t groupSize,
                                    const Dims& shape, const Dims& dims, const Dims& sizes,
                                    const SlicePlan& plan, const OptionFlags& options,
                                    const DebugContext& debugContext) {
  Dims whole = shape;
  whole.insert(whole.begin(), groupSize);
  Dims behind = dims;
  for (auto& d : behind) ++d;
  return createSliceableTensor(graph, type, whole, behind, sizes, plan, options, debugContext);
}

Tensor createGroupedSliceTensor(Graph& graph, const poplar::Type& type, std::size_t groupSize,
                                const Dims& shape, const Dims& dims, const Dims& sizes,
                                std::size_t numIndices, const SlicePlan& plan,
                                const OptionFlags& options, const DebugContext& debugContext) {
  const Tensor t = createSliceTensor(graph, type, shape, dims, sizes, groupSize * numIndices, plan,
                                     options, debugContext);
  return t.reshapePartial(0, 1, {groupSize, numIndices});
}

Tensor createGroupedIndicesTensor(Graph& graph, std::size_t groupSize, const Dims& dims,
                                  std::size_t numIndices, const SlicePlan& plan,
                                  const OptionFlags& options, const DebugContext& debugContext) {
  return createIndicesTensor(graph, dims, groupSize * numIndices, plan, options, debugContext)
      .reshapePartial(0, 1, {groupSize, numIndices});
}

Tensor groupedMultiSlice(Graph& graph, const Tensor& t, const Tensor& offsets, const Dims& dims,
                         const Dims& sizes, Sequence& prog, const SlicePlan& plan,
                         const OptionFlags& options, const DebugContext& debugContext) {
  checkGroups("groupedMultiSlice", t, offsets, nullptr);
  std::vector<Tensor> parts;
  for (std::size_t g = 0; g < t.dim(0); ++g)
    parts.push_back(
        multiSlice(graph, t[g], offsets[g], dims, sizes, prog, plan, options, debugContext)
            .expand({0}));
  return poplar::concat(parts);
}

void groupedMultiUpdate(Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets,
                        const Dims& dims, const Dims& sizes, Sequence& prog, const SlicePlan& plan,
                        const OptionFlags& options, const DebugContext& debugContext) {
  checkGroups("groupedMultiUpdate", t, offsets, &s);
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdate(graph, t[g], s[g], offsets[g], dims, sizes, prog, plan, options, debugContext);
}

void groupedMultiUpdateAdd(Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets,
                           const Tensor& scale, const Dims& dims, const Dims& sizes, Sequence& prog,
                           const SlicePlan& plan, const OptionFlags& options,
                           const DebugContext& debugContext) {
  checkGroups("groupedMultiUpdateAdd", t, offsets, &s);
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdateAdd(graph, t[g], s[g], offsets[g], scale, dims, sizes, prog, plan, options,
                   debugContext);
}

void groupedMultiUpdateMax(Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets,
                           const Dims& dims, const Dims& sizes, Sequence& prog,
                           const SlicePlan& plan, const OptionFlags& options,
                           const DebugContext& debugContext) {
  checkGroups("groupedMultiUpdateMax", t, offsets, &s);
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdateMax(graph, t[g], s[g], offsets[g], dims, sizes, prog, plan, options, debugContext);
}

namespace embedding {

SlicePlan plan(const Graph& graph, const poplar::Type& dataType, std::size_t /*groupSize*/,
               std::size_t numEntries, std::size_t outputSize, const Dims& numLookups,
               const OptionFlags& options) {
  return plan(graph, dataType, numEntries, outputSize, numLookups, options);
}

}  // namespace embedding
}  // namespace popops
