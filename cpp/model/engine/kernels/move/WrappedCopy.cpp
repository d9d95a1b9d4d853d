#include "engine/kernels/move/WrappedCopy.hpp"

#include <algorithm>
#include <array>

namespace ipujax::engine {
namespace {

std::vector<CopyDim> windowDims(const StepDesc& step, bool into_large) {
  const OperandDesc& large = step.operands[0];
  const OperandDesc& small = step.operands[2];
  const auto& window = step.attributes.integers("window");
  const auto bytes = static_cast<std::int64_t>(sizeOf(large.type));
  std::vector<CopyDim> dims;
  for (std::size_t w = 0; w < window.size(); ++w) {
    const auto large_stride = large.strides[static_cast<std::size_t>(window[w])] * bytes;
    const auto small_stride = small.strides[w] * bytes;
    dims.push_back(into_large ? CopyDim{small.shape[w], small_stride, large_stride}
                              : CopyDim{small.shape[w], large_stride, small_stride});
  }
  return dims;
}

}  // namespace

WrappedCopyKernel::WrappedCopyKernel(const StepDesc& step)
    : into_large_(step.operands[0].access == Access::kReadWrite),
      element_bytes_(sizeOf(step.operands[0].type)),
      index_type_(step.operands[1].type),
      dims_(windowDims(step, into_large_)),
      whole_(element_bytes_, dims_) {
  const OperandDesc& large = step.operands[0];
  const OperandDesc& indices = step.operands[1];
  const auto& window = step.attributes.integers("window");
  const auto& map = step.attributes.integers("map");
  const std::int64_t index_stride =
      indices.strides[0] * static_cast<std::int64_t>(sizeOf(indices.type));
  for (std::size_t i = 0; i < map.size(); ++i) {
    const auto dim = std::ranges::find(window, map[i]) - window.begin();
    sliced_.push_back({static_cast<std::size_t>(dim), static_cast<std::int64_t>(i) * index_stride,
                       large.shape[static_cast<std::size_t>(map[i])]});
  }
}

void WrappedCopyKernel::check(const StepCheck& step) {
  step.need(step.integers("batching").empty(), "one window where it goes on at the start");
  const auto& sizes = step.integers("sizes");
  const auto& shape = step.step().operands[0].shape;
  step.need(step.integers("window").size() == sizes.size(),
            "a window of all dimensions where it goes on at the start");
  for (std::size_t d = 0; d < sizes.size(); ++d)
    step.need(sizes[d] <= shape[d], "a window that fits the array");
}

void WrappedCopyKernel::run(RunContext& context, std::span<std::byte* const> pointers) const {
  if (whole_.bytes() == 0) return;
  std::array<std::int64_t, kMostRank> starts;
  std::byte* at = pointers[0];
  bool inside = true;
  for (std::size_t i = 0; i < sliced_.size(); ++i) {
    const Sliced& s = sliced_[i];
    starts[i] = withInteger(index_type_, [&]<class I>(I) {
      return Windows::wrapped(Windows::read<I>(pointers[1] + s.at), s.extent);
    });
    const CopyDim& dim = dims_[s.dim];
    at += starts[i] * (into_large_ ? dim.dst : dim.src);
    inside = inside && starts[i] + dim.n <= s.extent;
  }
  if (inside) return copy(context.pool, whole_, at, pointers[2]);
  copyParts(context.pool, starts.data(), 0, {pointers[0], pointers[2], dims_});
}

/// Copies the part, divided along the dimensions from `sliced` on.
void WrappedCopyKernel::copyParts(ThreadPool& pool, const std::int64_t* starts, std::size_t sliced,
                                  const Part& part) const {
  if (sliced == sliced_.size())
    return copy(pool, StridedCopy(element_bytes_, part.dims), part.large, part.small);
  const auto [d, at, extent] = sliced_[sliced];
  const CopyDim& dim = dims_[d];
  const auto [large_stride, small_stride] =
      into_large_ ? std::pair(dim.dst, dim.src) : std::pair(dim.src, dim.dst);
  const std::int64_t first = std::min(dim.n, extent - starts[sliced]);
  Part next = part;
  next.large += starts[sliced] * large_stride;
  next.dims[d].n = first;
  copyParts(pool, starts, sliced + 1, next);
  if (first == dim.n) return;
  next = part;
  next.small += first * small_stride;
  next.dims[d].n = dim.n - first;
  copyParts(pool, starts, sliced + 1, next);
}

void WrappedCopyKernel::copy(ThreadPool& pool, const StridedCopy& copy, std::byte* large,
                             std::byte* small) const {
  into_large_ ? copy.run(pool, small, large) : copy.run(pool, large, small);
}

}  // namespace ipujax::engine
