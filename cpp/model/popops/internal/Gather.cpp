#include "popops/internal/Gather.hpp"

#include <algorithm>

#include "engine/graph/Emit.hpp"
#include "popops/internal/SliceLayout.hpp"
#include "popops/internal/WindowCost.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {
namespace {

using Dims = std::vector<std::int64_t>;

bool contains(const Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

[[noreturn]] void refuse(const std::string& needs, const poplar::Tensor& operand,
                         const poplar::Tensor& indices) {
  throw poputil::poplibs_error("[popops::gather] needs " + needs + "; got operand " +
                               operand.shapeToString() + ", indices " + indices.shapeToString() +
                               ". Check the gather's dimension numbers.");
}

void checkDims(const poplar::Tensor& operand, const poplar::Tensor& indices,
               const GatherDims& dims) {
  const auto rank = static_cast<std::int64_t>(operand.rank());
  if (static_cast<std::int64_t>(dims.slice_sizes.size()) != rank)
    refuse("one slice size per operand dimension", operand, indices);
  if (dims.index_vector_dim < 0 ||
      dims.index_vector_dim > static_cast<std::int64_t>(indices.rank()))
    refuse("an index_vector_dim within the indices' rank", operand, indices);
  for (std::int64_t d = 0; d < rank; ++d) {
    if (dims.slice_sizes[d] < 0 || dims.slice_sizes[d] > static_cast<std::int64_t>(operand.dim(d)))
      refuse("slice sizes within the operand", operand, indices);
    const bool dropped =
        contains(dims.collapsed_slice_dims, d) || contains(dims.operand_batching_dims, d);
    if (dropped && dims.slice_sizes[d] > 1)
      refuse("slice size 1 in collapsed and batching dimensions", operand, indices);
  }
  if (dims.operand_batching_dims.size() != dims.start_indices_batching_dims.size())
    refuse("as many batching dimensions of the operand as of the indices", operand, indices);
  for (auto d : dims.start_index_map) {
    if (d < 0 || d >= rank) refuse("a start_index_map within the operand's rank", operand, indices);
  }
}

}  // namespace

void WindowSpec::addTo(ipujax::engine::Attributes& attributes) const {
  attributes.set("window", window).set("map", map).set("batching", batching);
  attributes.set("sizes", sizes).set("clamp", static_cast<std::int64_t>(outside));
}

Dims otherDims(std::size_t rank, const Dims& dims, const Dims& more) {
  Dims others;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(rank); ++d)
    if (!contains(dims, d) && !contains(more, d)) others.push_back(d);
  return others;
}

Dims batchingOf(std::size_t num_batch, std::int64_t index_vector_dim,
                const Dims& indices_batching_dims, const Dims& operand_batching_dims) {
  Dims batching;
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(num_batch); ++b) {
    // Batch dimensions of canonical indices are those of the given indices without the vector's.
    const auto it = std::ranges::find(indices_batching_dims, b + (b >= index_vector_dim ? 1 : 0));
    const auto i = static_cast<std::size_t>(it - indices_batching_dims.begin());
    batching.push_back(it == indices_batching_dims.end() ? -1 : operand_batching_dims[i]);
  }
  return batching;
}

poplar::Tensor canonicalIndices(const poplar::Tensor& indices, std::int64_t index_vector_dim) {
  const auto dim = static_cast<unsigned>(index_vector_dim);
  if (dim == indices.rank()) return indices.expand({static_cast<std::size_t>(dim)});
  return indices.dimRoll(dim, indices.rank() - 1);
}

void gatherWindows(poplar::Graph& graph, const std::string& name, const poplar::Tensor& operand,
                   const poplar::Tensor& indices, const poplar::Tensor& out, const WindowSpec& spec,
                   const ipujax::engine::Cost& cost, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext) {
  using ipujax::engine::Access;
  ipujax::engine::StepSpec step;
  step.kernel = name;
  step.operands = {{operand, Access::kRead}, {indices, Access::kRead}, {out, Access::kWrite}};
  spec.addTo(step.attributes);
  step.cost = cost;
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& operand,
                      const poplar::Tensor& indices, const GatherDims& dims, GatherLayout layout,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkDims(operand, indices, dims);
  const poplar::Tensor starts = canonicalIndices(indices, dims.index_vector_dim);
  if (starts.dim(starts.rank() - 1) != dims.start_index_map.size())
    refuse("an index vector as long as start_index_map", operand, indices);

  WindowSpec spec;
  spec.map = dims.start_index_map;
  spec.sizes = dims.slice_sizes;
  spec.window = otherDims(operand.rank(), dims.collapsed_slice_dims, dims.operand_batching_dims);
  if (spec.window.size() != dims.offset_dims.size())
    refuse("one offset dimension per window dimension", operand, indices);

  // Result dimensions: the window's at offset_dims, the batch's elsewhere, each in order.
  const std::size_t num_batch = starts.rank() - 1;
  const std::size_t rank = num_batch + spec.window.size();
  std::vector<std::size_t> shape(rank);
  const Dims batch_at = otherDims(rank, dims.offset_dims);
  std::vector<unsigned> canonical(batch_at.begin(), batch_at.end());
  if (batch_at.size() != num_batch) refuse("offset dimensions within the result", operand, indices);
  for (unsigned b = 0; b < num_batch; ++b) shape[canonical[b]] = starts.dim(b);
  spec.batching = batchingOf(num_batch, dims.index_vector_dim, dims.start_indices_batching_dims,
                             dims.operand_batching_dims);
  SliceProblem problem;
  std::vector<std::size_t> sliced(batch_at.begin(), batch_at.end());  // of the result
  for (std::size_t w = 0; w < spec.window.size(); ++w) {
    const auto at = static_cast<unsigned>(dims.offset_dims[w]);
    shape[at] = static_cast<std::size_t>(dims.slice_sizes[spec.window[w]]);
    canonical.push_back(at);
    if (contains(spec.map, spec.window[w])) sliced.push_back(at);
    problem.elements *= shape[at];
  }
  const auto out = layout == GatherLayout::kBySlice
                       ? createSpread(graph, operand.elementType(), shape, sliced, 0, debugContext)
                       : graph.addVariable(operand.elementType(), shape,
                                           poplar::VariableMappingMethod::LINEAR, debugContext);
  problem.coordinates = spec.map.size();
  problem.rows =
      problem.elements ? std::max<std::uint64_t>(1, operand.numElements() / problem.elements) : 0;
  problem.lookups = problem.elements ? out.numElements() / problem.elements : 0;
  gatherWindows(graph, "popx.gather", operand, starts, out.dimShuffle(canonical), spec,
                sliceCost(graph, operand, out, problem), prog, debugContext);
  return out;
}

}  // namespace popops::internal
