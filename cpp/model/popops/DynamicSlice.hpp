#pragma once
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"

namespace popops {

namespace internal {
struct SlicePlanData;
}

/// How slices and updates of a table are spread over tiles; embedding::plan makes one. A
/// default-constructed plan has no effect: tensors are mapped as without a plan. Costs depend only
/// on where tensors lie.
class SlicePlan {
 public:
  SlicePlan() = default;
  explicit SlicePlan(internal::SlicePlanData data);
  friend bool operator==(const SlicePlan& a, const SlicePlan& b);
  friend bool operator!=(const SlicePlan& a, const SlicePlan& b) { return !(a == b); }
  friend bool operator<(const SlicePlan& a, const SlicePlan& b);
  friend std::ostream& operator<<(std::ostream& o, const SlicePlan& p);
  /// For the library; null without a plan.
  const internal::SlicePlanData* data() const { return data_.get(); }

 private:
  std::shared_ptr<const internal::SlicePlanData> data_;
};

/// A tensor to be sliced in `dims`: each slice is spread over as many tiles as its size allows, so
/// that slicing needs no exchange. A tile has at least `minGrainSize` elements of each slice.
poplar::Tensor createSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                     const std::vector<std::size_t>& shape,
                                     const std::vector<std::size_t>& dims,
                                     const std::vector<std::size_t>& sizes,
                                     std::size_t minGrainSize = 0,
                                     const poplar::DebugContext& debugContext = {});
/// The same for multiSlice and multiUpdate with a plan, which needs one dimension and size 1.
poplar::Tensor createSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                     const std::vector<std::size_t>& shape,
                                     const std::vector<std::size_t>& dims,
                                     const std::vector<std::size_t>& sizes, const SlicePlan& plan,
                                     const poplar::OptionFlags& options,
                                     const poplar::DebugContext& debugContext = {});

/// A tensor for slices of `t`: shape [numIndices, t's shape with `sizes` in `dims`]. Mapped as the
/// slices of a sliceable tensor: a tile has its elements of all slices. A single slice is mapped as
/// the first slice of `t`.
poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Tensor& t,
                                 const std::vector<std::size_t>& dims,
                                 const std::vector<std::size_t>& sizes, std::size_t numIndices,
                                 const poplar::DebugContext& debugContext = {});
poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Type& type,
                                 const std::vector<std::size_t>& shape,
                                 const std::vector<std::size_t>& dims,
                                 const std::vector<std::size_t>& sizes, std::size_t numIndices,
                                 const SlicePlan& plan, const poplar::OptionFlags& options,
                                 const poplar::DebugContext& debugContext = {});

/// UNSIGNED_INT indices of shape [numIndices, dims.size()].
poplar::Tensor createIndicesTensor(poplar::Graph& graph, const std::vector<std::size_t>& dims,
                                   std::size_t numIndices, const SlicePlan& plan,
                                   const poplar::OptionFlags& options,
                                   const poplar::DebugContext& debugContext = {});

/// A tensor of which `s` is one slice: numSlices[i] slices in dims[i], each mapped as `s` is.
poplar::Tensor createSliceableTensorFromSlice(poplar::Graph& graph, const poplar::Tensor& s,
                                              const std::vector<std::size_t>& dims,
                                              const std::vector<std::size_t>& numSlices,
                                              const poplar::DebugContext& debugContext = {});

/// The part of `t` at `offset` (one integer per dim of `dims`), of extent `sizes` there and whole
/// in the other dimensions. As in the SDK, a slice that reaches the end of a dimension wraps around
/// to its start. The SDK leaves offsets outside a dimension undefined; here they are taken modulo
/// its size, or as the slice options say. All functions that have `options` take these:
///
/// - remapOutOfBoundIndices (true, false) [=false]: an offset outside becomes 0
/// - paddingIndexUsed (true, false) [=false]: the size of the sliced dimension is also a valid
///   offset; its slice is zeros, and updates skip it
/// - validateIndices (true, false) [=false]: any other offset outside ends the run with
///   application_runtime_error; no effect with remapOutOfBoundIndices
///
/// They also accept the options of embedding::plan, which have no effect, and throw invalid_option
/// for others.
poplar::Tensor dynamicSlice(poplar::Graph& graph, const poplar::Tensor& t,
                            const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                            const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});
void dynamicSliceWithOutput(poplar::Graph& graph, const poplar::Tensor& output,
                            const poplar::Tensor& t, const poplar::Tensor& offset,
                            const std::vector<std::size_t>& dims,
                            const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});

poplar::Graph::TileToTensorMapping getSliceMapping(poplar::Graph& graph, const poplar::Tensor& t,
                                                   const std::vector<std::size_t>& dims,
                                                   const std::vector<std::size_t>& sizes);

/// Writes `s` over the part of `t` at `offset`, in place; offsets are as in dynamicSlice. With
/// paddingIndexUsed it skips an update that does not lie inside `t`.
void dynamicUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                   const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                   const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {});

/// One slice of `t` for each row of `offsets` [n, dims.size()]: shape [n, slice's shape]. Offsets
/// are clamped.
poplar::Tensor multiSlice(poplar::Graph& graph, const poplar::Tensor& t,
                          const poplar::Tensor& offsets, const std::vector<std::size_t>& dims,
                          const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                          const SlicePlan& plan, const poplar::OptionFlags& options,
                          const poplar::DebugContext& debugContext = {});

/// t[offsets[i]] = s[i], in order; slices that do not lie inside are skipped.
void multiUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                 const poplar::Tensor& offsets, const std::vector<std::size_t>& dims,
                 const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                 const SlicePlan& plan, const poplar::OptionFlags& options,
                 const poplar::DebugContext& debugContext = {});

/// t[offsets[i]] += scale * s[i]; skips like multiUpdate. `scale`: one element, of t's type, or
/// FLOAT where t is HALF.
void multiUpdateAdd(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                    const poplar::Tensor& offsets, const poplar::Tensor& scale,
                    const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                    poplar::program::Sequence& prog, const SlicePlan& plan,
                    const poplar::OptionFlags& options,
                    const poplar::DebugContext& debugContext = {});

/// multiSlice and multiUpdateAdd for slices of size 1 along `dim`, at offsets known when the graph
/// is made. Slices outside are zeros, unless the options remap their offsets.
poplar::Tensor multiSlice(poplar::Graph& graph, const poplar::Tensor& t,
                          poplar::ArrayRef<unsigned> offsets, std::size_t dim,
                          poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext = {},
                          const poplar::OptionFlags& optionFlags = {});
void multiUpdateAdd(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                    poplar::ArrayRef<unsigned> offsets, const poplar::Tensor& scale,
                    std::size_t dim, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext = {},
                    const poplar::OptionFlags& optionFlags = {});

/// t[offsets[i]] = max(t[offsets[i]], s[i]); skips like multiUpdate.
void multiUpdateMax(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                    const poplar::Tensor& offsets, const std::vector<std::size_t>& dims,
                    const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                    const SlicePlan& plan, const poplar::OptionFlags& options,
                    const poplar::DebugContext& debugContext = {});

/// The same for tables, slices and offsets with a leading group dimension: `shape`, `dims` and
/// `sizes` are those of one group. The model processes the groups one after another.
poplar::Tensor createGroupedSliceableTensor(
    poplar::Graph& graph, const poplar::Type& type, std::size_t groupSize,
    const std::vector<std::size_t>& shape, const std::vector<std::size_t>& dims,
    const std::vector<std::size_t>& sizes, const SlicePlan& plan,
    const poplar::OptionFlags& options, const poplar::DebugContext& debugContext = {});
poplar::Tensor createGroupedSliceTensor(
    poplar::Graph& graph, const poplar::Type& type, std::size_t groupSize,
    const std::vector<std::size_t>& shape, const std::vector<std::size_t>& dims,
    const std::vector<std::size_t>& sizes, std::size_t numIndices, const SlicePlan& plan,
    const poplar::OptionFlags& options, const poplar::DebugContext& debugContext = {});
poplar::Tensor createGroupedIndicesTensor(poplar::Graph& graph, std::size_t groupSize,
                                          const std::vector<std::size_t>& dims,
                                          std::size_t numIndices, const SlicePlan& plan,
                                          const poplar::OptionFlags& options,
                                          const poplar::DebugContext& debugContext = {});
poplar::Tensor groupedMultiSlice(poplar::Graph& graph, const poplar::Tensor& t,
                                 const poplar::Tensor& offsets,
                                 const std::vector<std::size_t>& dims,
                                 const std::vector<std::size_t>& sizes,
                                 poplar::program::Sequence& prog, const SlicePlan& plan,
                                 const poplar::OptionFlags& options,
                                 const poplar::DebugContext& debugContext = {});
void groupedMultiUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                        const poplar::Tensor& offsets, const std::vector<std::size_t>& dims,
                        const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                        const SlicePlan& plan, const poplar::OptionFlags& options,
                        const poplar::DebugContext& debugContext = {});
void groupedMultiUpdateAdd(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                           const poplar::Tensor& offsets, const poplar::Tensor& scale,
                           const std::vector<std::size_t>& dims,
                           const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                           const SlicePlan& plan, const poplar::OptionFlags& options,
                           const poplar::DebugContext& debugContext = {});
void groupedMultiUpdateMax(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                           const poplar::Tensor& offsets, const std::vector<std::size_t>& dims,
                           const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                           const SlicePlan& plan, const poplar::OptionFlags& options,
                           const poplar::DebugContext& debugContext = {});

namespace embedding {

/// Plans lookups in, and updates of, a table of numEntries rows of outputSize elements, for the
/// largest of numLookups. The slice options have no effect here. Other options:
///
/// - usedForSlice, usedForUpdate (true, false) [=true]: what the plan is for; at least one is true
/// - operationForUpdate (none, add, max) [=add]
/// - availableMemoryProportion: decimal, 0 to 1 [=0.6] of a tile's memory for temporaries. If no
///   plan fits, the memory is unlimited
/// - indicesDistribution (uniform, onePoint) [=uniform]: equally likely, or all the same
/// - indicesAreSorted (true, false) [=false]
/// - partialType (half, float): type of the sums of updates
/// - planConstraints: JSON, {"lookupSplit": 2, "slicedDimSplit": 4, "unslicedDimSplit": 8,
///   "unslicedGrainSize": 2, "groupSplit": 1}; each member fixes one number of the plan
///
/// Throws invalid_option for other options and wrong values, poplibs_error if there is no plan.
SlicePlan plan(const poplar::Graph& graph, const poplar::Type& dataType, std::size_t numEntries,
               std::size_t outputSize, const std::vector<std::size_t>& numLookups,
               const poplar::OptionFlags& options);
/// For tables of `groupSize` groups.
SlicePlan plan(const poplar::Graph& graph, const poplar::Type& dataType, std::size_t groupSize,
               std::size_t numEntries, std::size_t outputSize,
               const std::vector<std::size_t>& numLookups, const poplar::OptionFlags& options);

/// The arguments of plan for one of several plans.
struct SlicePlanningParameters {
  SlicePlanningParameters(const poplar::Graph& graph, const poplar::Type& dataType,
                          std::size_t groupSize, std::size_t numEntries, std::size_t outputSize,
                          std::vector<std::size_t> numLookups, poplar::OptionFlags optionFlags)
      : graph(graph),
        dataType(dataType),
        groupSize(groupSize),
        numEntries(numEntries),
        outputSize(outputSize),
        numLookups(std::move(numLookups)),
        optionFlags(std::move(optionFlags)) {}
  const poplar::Graph& graph;
  poplar::Type dataType;
  std::size_t groupSize;
  std::size_t numEntries;
  std::size_t outputSize;
  std::vector<std::size_t> numLookups;
  poplar::OptionFlags optionFlags;
};
/// The plans of all of these, in their order.
std::vector<SlicePlan> planMultiple(const std::vector<SlicePlanningParameters>& descriptions);

}  // namespace embedding
}  // namespace popops
