#include "popops/DynamicSlice.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "poplar/exceptions.hpp"
#include "popops/internal/DynamicSlice.hpp"
#include "popops/internal/Gather.hpp"
#include "popops/internal/Scatter.hpp"
#include "popops/internal/SliceOffsets.hpp"
#include "popops/internal/WindowCost.hpp"
#include "poputil/exceptions.hpp"

// The host kernels are popx's gather and scatter kernels: a dynamic slice is a gather of one
// window.
namespace popops {
namespace {

using Dims = std::vector<std::size_t>;
using ipujax::engine::Outside;
using poplar::Tensor;

[[noreturn]] void refuse(const char* function, const std::string& needs, const Tensor& t,
                         const Tensor& offsets) {
  throw poputil::poplibs_error(std::string("[popops::") + function + "] needs " + needs +
                               "; got t " + t.shapeToString() + ", offsets " +
                               offsets.shapeToString() + ". Check dims, sizes and offsets.");
}

void check(const char* function, const Tensor& t, const Tensor& offsets, const Dims& dims,
           const Dims& sizes) {
  if (dims.size() != sizes.size()) refuse(function, "one size per sliced dimension", t, offsets);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= t.rank() || sizes[i] > t.dim(static_cast<unsigned>(dims[i])))
      refuse(function, "sliced dimensions and sizes within t", t, offsets);
    if (std::count(dims.begin(), dims.end(), dims[i]) != 1)
      refuse(function, "each sliced dimension once", t, offsets);
  }
}

Dims sliceShape(const std::vector<std::size_t>& shape, const Dims& dims, const Dims& sizes) {
  Dims result = shape;
  for (std::size_t i = 0; i < dims.size(); ++i) result[dims[i]] = sizes[i];
  return result;
}

internal::WindowSpec windowSpec(const Tensor& t, const Dims& dims, const Dims& sizes, bool multiple,
                                Outside outside) {
  internal::WindowSpec spec;
  const Dims shape = sliceShape(t.shape(), dims, sizes);
  spec.sizes.assign(shape.begin(), shape.end());
  spec.window.resize(shape.size());
  std::iota(spec.window.begin(), spec.window.end(), 0);
  spec.map.assign(dims.begin(), dims.end());
  if (multiple) spec.batching = {-1};
  spec.outside = outside;
  return spec;
}

std::uint64_t numSlots(const Tensor& t, const Dims& dims, const Dims& sizes) {
  std::uint64_t slots = 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    slots *= t.dim(static_cast<unsigned>(dims[i])) - sizes[i] + 1;
  return slots;
}

/// The offsets as [K]; if there is a copy for each tile, [K, tiles], the first one is read.
Tensor offsetVector(const char* function, const Tensor& t, const Tensor& offset, const Dims& dims) {
  if (offset.rank() == 0 && dims.size() == 1) return offset.expand({0});
  if (offset.rank() == 2 && offset.dim(0) == dims.size() && offset.dim(1) > 0)
    return offset.slice(0, 1, 1).squeeze({1});
  if (offset.rank() != 1 || offset.dim(0) != dims.size())
    refuse(function, "one offset per sliced dimension", t, offset);
  return offset;
}

Tensor offsetRows(const char* function, const Tensor& t, const Tensor& offsets, const Dims& dims) {
  if (offsets.rank() == 1 && dims.size() == 1) return offsets.expand({1});
  if (offsets.rank() != 2 || offsets.dim(1) != dims.size())
    refuse(function, "offsets of shape [n, number of sliced dimensions]", t, offsets);
  return offsets;
}

/// A slice of quarters has the format and scale of `t`.
void copyMetadata(const Tensor& t, const Tensor& out, poplar::program::Sequence& prog) {
  if (t.hasMetadata() && out.getMetadata() != t.getMetadata())
    prog.add(poplar::program::Copy(t.getMetadata(), out.getMetadata()));
}

internal::SliceProblem problemOf(const Tensor& t, const Dims& dims, const Dims& sizes,
                                 std::size_t lookups) {
  internal::SliceProblem problem;
  for (auto d : sliceShape(t.shape(), dims, sizes)) problem.elements *= d;
  problem.rows = problem.elements ? t.numElements() / problem.elements : 0;
  problem.lookups = lookups;
  problem.coordinates = dims.size();
  return problem;
}

void update(const char* function, poplar::Graph& graph, const Tensor& t, const Tensor& s,
            const Tensor& offsets, const Tensor* scale, const Dims& dims, const Dims& sizes,
            const char* body, poplar::program::Sequence& prog, const poplar::OptionFlags& options,
            const poplar::DebugContext& debugContext) {
  check(function, t, offsets, dims, sizes);
  const Tensor given = offsetRows(function, t, offsets, dims);
  const Tensor rows =
      internal::SliceOffsets(t, dims, sizes, options).prepared(graph, given, prog, debugContext);
  Dims expected = sliceShape(t.shape(), dims, sizes);
  expected.insert(expected.begin(), rows.dim(0));
  if (s.shape() != expected) refuse(function, "slices of shape [n, slice's shape]", t, offsets);
  auto problem = problemOf(t, dims, sizes, rows.dim(0));
  const bool accumulates = std::string(body) != "replace";
  problem.work = accumulates ? internal::SliceWork::kAccumulate : internal::SliceWork::kWrite;
  internal::scatterWindows(graph, "popops.multi_update", {t}, rows, {s}, scale,
                           windowSpec(t, dims, sizes, true, Outside::kSkip), body, false,
                           internal::sliceCost(graph, t, s, problem), prog, debugContext);
}

/// The offsets of one slice, `part`, as [K].
Tensor checkedOffset(const char* function, const Tensor& t, const Tensor& part,
                     const Tensor& offset, const Dims& dims, const Dims& sizes) {
  check(function, t, offset, dims, sizes);
  const Tensor starts = offsetVector(function, t, offset, dims);
  if (part.shape() != sliceShape(t.shape(), dims, sizes))
    refuse(function, "an output or update of the slice's shape", t, offset);
  return starts;
}

/// The options' rules for the offsets of one slice: any start inside is valid, since a slice wraps
/// around to the start of a dimension.
internal::SliceOffsets oneOffset(const Tensor& t, const Dims& dims,
                                 const poplar::OptionFlags& options) {
  return {t, dims, Dims(dims.size(), 1), options};
}

void sliceInto(poplar::Graph& graph, const Tensor& output, const Tensor& t, const Tensor& starts,
               const Dims& dims, const Dims& sizes, Outside outside,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  internal::gatherWindows(
      graph, "popops.dynamic_slice", t, starts, output, windowSpec(t, dims, sizes, false, outside),
      internal::dynamicSliceCost(graph, output, numSlots(t, dims, sizes), dims.size()), prog,
      debugContext);
}

void updateAt(poplar::Graph& graph, const Tensor& t, const Tensor& s, const Tensor& starts,
              const Dims& dims, const Dims& sizes, Outside outside, poplar::program::Sequence& prog,
              const poplar::DebugContext& debugContext) {
  internal::scatterWindows(
      graph, "popops.dynamic_update", {t}, starts, {s}, nullptr,
      windowSpec(t, dims, sizes, false, outside), "replace", true,
      internal::dynamicSliceCost(graph, s, numSlots(t, dims, sizes), dims.size()), prog,
      debugContext);
}

/// A variable for a slice of `t`, spread over the tiles.
Tensor sliceVariable(poplar::Graph& graph, const Tensor& t, const Dims& dims, const Dims& sizes,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const Tensor out = graph.addVariable(t.elementType(), sliceShape(t.shape(), dims, sizes),
                                       poplar::VariableMappingMethod::LINEAR, debugContext);
  copyMetadata(t, out, prog);
  return out;
}

/// The number of a tensor's elements on its fullest tile; nullopt unless all of it is mapped.
std::optional<std::size_t> fullestTile(const poplar::Graph::TileToTensorMapping& mapping,
                                       std::size_t elements) {
  std::size_t fullest = 0;
  std::size_t mapped = 0;
  for (const auto& regions : mapping) {
    std::size_t load = 0;
    for (const auto& region : regions) load += region.size();
    fullest = std::max(fullest, load);
    mapped += load;
  }
  if (mapped < elements) return std::nullopt;
  return fullest;
}

/// A variable for a slice of `t`. It is mapped like the first slice of `t`, so that nothing moves,
/// unless that fills a tile more than a linear mapping does.
Tensor sliceNearTable(poplar::Graph& graph, const Tensor& t, const Dims& dims, const Dims& sizes,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  const Tensor out = sliceVariable(graph, t, dims, sizes, prog, debugContext);
  Tensor first = t;
  for (std::size_t i = 0; i < dims.size(); ++i)
    first = first.slice(0, sizes[i], static_cast<unsigned>(dims[i]));
  const auto near = graph.getTileMapping(first, false);
  const auto fullest = fullestTile(near, first.numElements());
  if (fullest && fullest <= fullestTile(graph.getTileMapping(out), out.numElements()))
    graph.setTileMapping(out, near);
  return out;
}

}  // namespace

Tensor internal::clampedSlice(poplar::Graph& graph, const Tensor& t, const Tensor& offset,
                              const Dims& dims, const Dims& sizes, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext) {
  check("dynamicSlice", t, offset, dims, sizes);
  const Tensor out = sliceVariable(graph, t, dims, sizes, prog, debugContext);
  clampedSliceWithOutput(graph, out, t, offset, dims, sizes, prog, debugContext);
  return out;
}

void internal::clampedSliceWithOutput(poplar::Graph& graph, const Tensor& output, const Tensor& t,
                                      const Tensor& offset, const Dims& dims, const Dims& sizes,
                                      poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext) {
  const Tensor starts = checkedOffset("dynamicSlice", t, output, offset, dims, sizes);
  sliceInto(graph, output, t, starts, dims, sizes, Outside::kClamp, prog, debugContext);
}

void internal::clampedUpdate(poplar::Graph& graph, const Tensor& t, const Tensor& s,
                             const Tensor& offset, const Dims& dims, const Dims& sizes,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext) {
  const Tensor starts = checkedOffset("dynamicUpdate", t, s, offset, dims, sizes);
  updateAt(graph, t, s, starts, dims, sizes, Outside::kClamp, prog, debugContext);
}

void dynamicSliceWithOutput(poplar::Graph& graph, const Tensor& output, const Tensor& t,
                            const Tensor& offset, const Dims& dims, const Dims& sizes,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext,
                            const poplar::OptionFlags& options) {
  const Tensor given = checkedOffset("dynamicSlice", t, output, offset, dims, sizes);
  const auto offsets = oneOffset(t, dims, options);
  const Tensor starts = offsets.prepared(graph, given, prog, debugContext);
  sliceInto(graph, output, t, starts, dims, sizes, Outside::kWrap, prog, debugContext);
  offsets.clearPadding(graph, output, starts, prog, debugContext);
}

Tensor dynamicSlice(poplar::Graph& graph, const Tensor& t, const Tensor& offset, const Dims& dims,
                    const Dims& sizes, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  check("dynamicSlice", t, offset, dims, sizes);
  const Tensor out = sliceNearTable(graph, t, dims, sizes, prog, debugContext);
  dynamicSliceWithOutput(graph, out, t, offset, dims, sizes, prog, debugContext, options);
  return out;
}

poplar::Graph::TileToTensorMapping getSliceMapping(poplar::Graph& graph, const Tensor& t,
                                                   const Dims& dims, const Dims& sizes) {
  Tensor slice = t;
  for (std::size_t i = 0; i < dims.size(); ++i)
    slice = slice.slice(0, sizes.at(i), static_cast<unsigned>(dims[i]));
  return graph.getTileMapping(slice);
}

void dynamicUpdate(poplar::Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offset,
                   const Dims& dims, const Dims& sizes, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  const Tensor given = checkedOffset("dynamicUpdate", t, s, offset, dims, sizes);
  const auto offsets = oneOffset(t, dims, options);
  const Tensor starts = offsets.prepared(graph, given, prog, debugContext);
  const Outside outside = offsets.havePadding() ? Outside::kSkip : Outside::kWrap;
  updateAt(graph, t, s, starts, dims, sizes, outside, prog, debugContext);
}

Tensor multiSlice(poplar::Graph& graph, const Tensor& t, const Tensor& offsets, const Dims& dims,
                  const Dims& sizes, poplar::program::Sequence& prog, const SlicePlan& plan,
                  const poplar::OptionFlags& options, const poplar::DebugContext& debugContext) {
  check("multiSlice", t, offsets, dims, sizes);
  const Tensor given = offsetRows("multiSlice", t, offsets, dims);
  const Tensor out = plan.data()
                         ? createSliceTensor(graph, t.elementType(), t.shape(), dims, sizes,
                                             given.dim(0), plan, options, debugContext)
                         : createSliceTensor(graph, t, dims, sizes, given.dim(0), debugContext);
  internal::multiSliceInto(graph, out, t, given, dims, sizes, prog, options, debugContext);
  return out;
}

void internal::multiSliceInto(poplar::Graph& graph, const Tensor& out, const Tensor& t,
                              const Tensor& offsets, const Dims& dims, const Dims& sizes,
                              poplar::program::Sequence& prog, const poplar::OptionFlags& options,
                              const poplar::DebugContext& debugContext) {
  check("multiSlice", t, offsets, dims, sizes);
  const Tensor given = offsetRows("multiSlice", t, offsets, dims);
  const SliceOffsets starts(t, dims, sizes, options);
  const Tensor rows = starts.prepared(graph, given, prog, debugContext);
  copyMetadata(t, out, prog);
  gatherWindows(
      graph, "popops.multi_slice", t, rows, out, windowSpec(t, dims, sizes, true, Outside::kClamp),
      sliceCost(graph, t, out, problemOf(t, dims, sizes, rows.dim(0))), prog, debugContext);
  starts.clearPadding(graph, out, rows, prog, debugContext);
}

void multiUpdate(poplar::Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets,
                 const Dims& dims, const Dims& sizes, poplar::program::Sequence& prog,
                 const SlicePlan& /*plan*/, const poplar::OptionFlags& options,
                 const poplar::DebugContext& debugContext) {
  update("multiUpdate", graph, t, s, offsets, nullptr, dims, sizes, "replace", prog, options,
         debugContext);
}

void multiUpdateAdd(poplar::Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets,
                    const Tensor& scale, const Dims& dims, const Dims& sizes,
                    poplar::program::Sequence& prog, const SlicePlan& /*plan*/,
                    const poplar::OptionFlags& options, const poplar::DebugContext& debugContext) {
  const bool half_by_float =
      t.elementType() == poplar::HALF && scale.elementType() == poplar::FLOAT;
  if (scale.numElements() != 1 || (scale.elementType() != t.elementType() && !half_by_float)) {
    refuse("multiUpdateAdd", "a scale of one element of t's type (or FLOAT where t is HALF)", t,
           offsets);
  }
  const Tensor factor = scale.reshape({});
  update("multiUpdateAdd", graph, t, s, offsets, &factor, dims, sizes, "scaled_add", prog, options,
         debugContext);
}

void multiUpdateMax(poplar::Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets,
                    const Dims& dims, const Dims& sizes, poplar::program::Sequence& prog,
                    const SlicePlan& /*plan*/, const poplar::OptionFlags& options,
                    const poplar::DebugContext& debugContext) {
  update("multiUpdateMax", graph, t, s, offsets, nullptr, dims, sizes, "max", prog, options,
         debugContext);
}

}  // namespace popops
