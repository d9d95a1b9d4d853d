#include "popops/DynamicSlice.hpp"
#include "popops/internal/SliceOffsets.hpp"
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

Tensor groupedMultiSlice(Graph& graph, const Tensor& t, const Tensor& offsets, const Dims& dims,
                         const Dims& sizes, Sequence& prog, const SlicePlan& plan,
                         const OptionFlags& options, const DebugContext& debugContext) {
  checkGroups("groupedMultiSlice", t, offsets, nullptr);
  const std::size_t lookups = offsets.rank() > 1 ? offsets.dim(1) : 1;
  const Tensor out = createGroupedSliceTensor(graph, t.elementType(), t.dim(0), t[0].shape(), dims,
                                              sizes, lookups, plan, options, debugContext);
  for (std::size_t g = 0; g < t.dim(0); ++g)
    internal::multiSliceInto(graph, out[g], t[g], offsets[g], dims, sizes, prog, options,
                             debugContext);
  return out;
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

}  // namespace popops
