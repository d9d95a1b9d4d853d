#include "popx/Gather.hpp"

#include <algorithm>
#include <memory>

#include "engine/Emit.hpp"
#include "engine/Kernel.hpp"
#include "engine/kernels/Copy.hpp"
#include "engine/kernels/CopyWindows.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"
#include "popx/WindowCost.hpp"

namespace popx {
namespace {

using ipujax::engine::Kernel;
using ipujax::engine::RunContext;
using ipujax::engine::StepDesc;
using ipujax::engine::StridedCopy;
using ipujax::engine::Windows;

constexpr std::int64_t kParallelBytes = 256 * 1024;
constexpr std::int64_t kBytesPerWindow = 32;  // what walking one window costs, as bytes copied

/// Operands: operand (read), indices (read), out (write); canonical shapes.
class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const StepDesc& step)
      : windows_(step.operands[0], step.operands[1], step.operands[2], step.attributes),
        copy_(ipujax::engine::sizeOf(step.operands[0].type), windows_.shape(),
              windows_.largeStrides(), windows_.smallStrides()),
        element_bytes_(ipujax::engine::sizeOf(step.operands[0].type)) {}

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const std::int64_t n = windows_.count();
    const std::int64_t each = copy_.bytes() + kBytesPerWindow;
    if (n * each < kParallelBytes || n == 0) return range(p, 0, n);
    if (n == 1) {
      windows_.forEach(p[1], 0, 1, [&](std::int64_t from, std::int64_t to, std::int64_t) {
        copy_.run(context.pool, p[0] + from, p[2] + to);
      });
      return;
    }
    context.pool.parallelFor(n, std::max<std::int64_t>(1, kParallelBytes / 2 / each),
                             [&](std::int64_t begin, std::int64_t end) { range(p, begin, end); });
  }

 private:
  void range(std::span<std::byte* const> p, std::int64_t begin, std::int64_t end) const {
    if (windows_.windowElements() != 1) {
      windows_.forEach(p[1], begin, end, [&](std::int64_t from, std::int64_t to, std::int64_t) {
        copy_.run(p[0] + from, p[2] + to);
      });
      return;
    }
    switch (element_bytes_) {
      case 1:
        return elements<1>(p, begin, end);
      case 2:
        return elements<2>(p, begin, end);
      case 4:
        return elements<4>(p, begin, end);
      default:
        return elements<8>(p, begin, end);
    }
  }

  template <std::size_t kBytes>
  void elements(std::span<std::byte* const> p, std::int64_t begin, std::int64_t end) const {
    windows_.forEach(p[1], begin, end, [&](std::int64_t from, std::int64_t to, std::int64_t) {
      std::memcpy(p[2] + to, p[0] + from, kBytes);
    });
  }

  Windows windows_;
  StridedCopy copy_;
  std::size_t element_bytes_;
};

std::unique_ptr<Kernel> makeGather(const StepDesc& step) {
  return std::make_unique<GatherKernel>(step);
}

void checkGather(ipujax::engine::StepCheck& check) {
  check.operands(3);
  const auto from = check.read(0);
  Windows::check(check, from, check.read(1), check.written(2).hasTypeOf(from));
}

const ipujax::engine::RegisterKernel kGather{"popx.gather", makeGather, checkGather};
const ipujax::engine::RegisterKernel kDynamicSlice{"popops.dynamic_slice", makeGather, checkGather};
const ipujax::engine::RegisterKernel kMultiSlice{"popops.multi_slice", makeGather, checkGather};

using Dims = std::vector<std::int64_t>;

bool contains(const Dims& dims, std::int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

[[noreturn]] void refuse(const std::string& needs, const poplar::Tensor& operand,
                         const poplar::Tensor& indices) {
  throw poplar::poplar_error("[popx.gather] needs " + needs + "; got operand " +
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
  step.attributes.set("window", spec.window);
  step.attributes.set("map", spec.map);
  step.attributes.set("batching", spec.batching);
  step.attributes.set("sizes", spec.sizes);
  step.attributes.set("clamp", std::int64_t{spec.clamp});
  step.cost = cost;
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

poplar::Tensor gather(poplar::Graph& graph, const poplar::Tensor& operand,
                      const poplar::Tensor& indices, const GatherDims& dims,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkDims(operand, indices, dims);
  const poplar::Tensor starts = canonicalIndices(indices, dims.index_vector_dim);
  if (starts.dim(starts.rank() - 1) != dims.start_index_map.size())
    refuse("an index vector as long as start_index_map", operand, indices);

  WindowSpec spec;
  spec.map = dims.start_index_map;
  spec.sizes = dims.slice_sizes;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(operand.rank()); ++d) {
    if (!contains(dims.collapsed_slice_dims, d) && !contains(dims.operand_batching_dims, d))
      spec.window.push_back(d);
  }
  if (spec.window.size() != dims.offset_dims.size())
    refuse("one offset dimension per window dimension", operand, indices);

  // Result dimensions: the window's at offset_dims, the batch's elsewhere, each in order.
  const std::size_t num_batch = starts.rank() - 1;
  const std::size_t rank = num_batch + spec.window.size();
  std::vector<std::size_t> shape(rank);
  std::vector<unsigned> batch_at, canonical;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!contains(dims.offset_dims, static_cast<std::int64_t>(i)))
      batch_at.push_back(static_cast<unsigned>(i));
  }
  if (batch_at.size() != num_batch) refuse("offset dimensions within the result", operand, indices);
  for (std::size_t b = 0; b < num_batch; ++b) {
    shape[batch_at[b]] = starts.dim(static_cast<unsigned>(b));
    canonical.push_back(batch_at[b]);
    // A batch dimension of the canonical indices is one of the given indices, less the vector's.
    const auto given = static_cast<std::int64_t>(b) +
                       (static_cast<std::int64_t>(b) >= dims.index_vector_dim ? 1 : 0);
    const auto it = std::find(dims.start_indices_batching_dims.begin(),
                              dims.start_indices_batching_dims.end(), given);
    spec.batching.push_back(it == dims.start_indices_batching_dims.end()
                                ? -1
                                : dims.operand_batching_dims[static_cast<std::size_t>(
                                      it - dims.start_indices_batching_dims.begin())]);
  }
  SliceProblem problem;
  for (std::size_t w = 0; w < spec.window.size(); ++w) {
    const auto at = static_cast<unsigned>(dims.offset_dims[w]);
    shape[at] = static_cast<std::size_t>(dims.slice_sizes[spec.window[w]]);
    canonical.push_back(at);
    problem.elements *= shape[at];
  }
  const auto out = graph.addVariable(operand.elementType(), shape, debugContext);
  poputil::mapTensorLinearly(graph, out);
  problem.coordinates = spec.map.size();
  problem.rows =
      problem.elements ? std::max<std::uint64_t>(1, operand.numElements() / problem.elements) : 0;
  problem.lookups = problem.elements ? out.numElements() / problem.elements : 0;
  gatherWindows(graph, "popx.gather", operand, starts, out.dimShuffle(canonical), spec,
                sliceCost(graph, operand, out, problem), prog, debugContext);
  return out;
}

}  // namespace popx
