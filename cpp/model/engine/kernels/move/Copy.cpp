#include "engine/kernels/move/Copy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/Errors.hpp"
#include "engine/LoopNest.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/simd/Transpose.hpp"

namespace ipujax::engine {
namespace {

// Below this a second thread costs more than it saves (one wake-up is a few microseconds).
constexpr std::int64_t kParallelBytes = 256 * 1024;

std::size_t log2Of(std::int64_t size) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(size)));
}

std::vector<CopyDim> byteDims(std::int64_t element_bytes, std::span<const std::int64_t> shape,
                              std::span<const std::int64_t> src,
                              std::span<const std::int64_t> dst) {
  if (shape.size() != src.size() || shape.size() != dst.size()) {
    throw poplar_error("[engine.copy] needs one stride per dimension; got " +
                       std::to_string(shape.size()) + " dimensions, " + std::to_string(src.size()) +
                       " and " + std::to_string(dst.size()) + " strides.");
  }
  std::vector<CopyDim> dims;
  for (std::size_t i = 0; i < shape.size(); ++i)
    dims.push_back({shape[i], src[i] * element_bytes, dst[i] * element_bytes});
  return dims;
}

template <std::size_t kBytes>
void fixedRows(const std::byte* src, std::byte* dst, const CopyDim& rows) {
  for (std::int64_t r = 0; r < rows.n; ++r, src += rows.src, dst += rows.dst) {
    std::memcpy(dst, src, kBytes);
  }
}

void copyRows(const std::byte* src, std::byte* dst, const CopyDim& rows, std::size_t bytes) {
  switch (bytes) {
    case 12:
      return fixedRows<12>(src, dst, rows);
    case 16:
      return fixedRows<16>(src, dst, rows);
    case 32:
      return fixedRows<32>(src, dst, rows);
    case 64:
      return fixedRows<64>(src, dst, rows);
    default:
      for (std::int64_t r = 0; r < rows.n; ++r, src += rows.src, dst += rows.dst) {
        std::memcpy(dst, src, bytes);
      }
  }
}

std::unique_ptr<Kernel> makeCopy(const StepDesc& step) {
  const auto& src = step.operands[0];
  return kernelOf(
      [copy = StridedCopy(sizeOf(src.type), src.shape, src.strides, step.operands[1].strides)](
          RunContext& context, std::span<std::byte* const> pointers) {
        copy.run(context.pool, pointers[0], pointers[1]);
      });
}

void checkCopy(StepCheck& check) {
  check.operands(2);
  const auto from = check.read(0);
  check.written(1).hasTypeOf(from).hasShapeOf(from);
  check.mayReplace(0, 1);
}

const RegisterKernel kCopy{"engine.copy", makeCopy, checkCopy};

}  // namespace

std::vector<CopyDim> orderedAndMerged(std::span<const CopyDim> dims) {
  std::vector<CopyDim> ordered(dims.begin(), dims.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const CopyDim& a, const CopyDim& b) {
    return std::abs(a.dst) > std::abs(b.dst);
  });
  std::vector<CopyDim> merged;
  for (const CopyDim& dim : ordered)
    appendLoop<&CopyDim::n, &CopyDim::src, &CopyDim::dst>(merged, dim);
  return merged;
}

StridedCopy::StridedCopy(std::size_t element_bytes, std::span<const std::int64_t> shape,
                         std::span<const std::int64_t> src_strides,
                         std::span<const std::int64_t> dst_strides)
    : StridedCopy(element_bytes, byteDims(static_cast<std::int64_t>(element_bytes), shape,
                                          src_strides, dst_strides)) {}

StridedCopy::StridedCopy(std::size_t element_bytes, std::span<const CopyDim> dims)
    : element_(static_cast<std::int64_t>(element_bytes)), bytes_(element_) {
  if (!std::has_single_bit(element_bytes) || element_bytes > 8 || dims.size() > kMostRank) {
    throw poplar_error("[engine.copy] needs elements of 1, 2, 4 or 8 bytes and at most " +
                       std::to_string(kMostRank) + " dimensions; got " +
                       std::to_string(element_bytes) + " bytes and " + std::to_string(dims.size()) +
                       " dimensions.");
  }
  for (const CopyDim& dim : dims) bytes_ *= dim.n;
  if (bytes_ == 0) return;
  std::vector<CopyDim> forward(dims.begin(), dims.end());
  for (CopyDim& dim : forward) {
    if (dim.dst >= 0) continue;  // else walk it the other way
    src_offset_ += (dim.n - 1) * dim.src;
    dst_offset_ += (dim.n - 1) * dim.dst;
    dim.src = -dim.src;
    dim.dst = -dim.dst;
  }
  dims_ = orderedAndMerged(forward);
  widen();
  chooseInner();
}

/// A short contiguous run is one wider element: pairs of floats transpose as 8-byte elements.
void StridedCopy::widen() {
  if (dims_.size() < 2) return;
  const CopyDim last = dims_.back();
  const std::int64_t run = last.n * element_;
  if (last.src == element_ && last.dst == element_ && run <= 8 &&
      std::has_single_bit(static_cast<std::uint64_t>(run))) {
    element_ = run;
    dims_.pop_back();
  }
}

void StridedCopy::chooseInner() {
  while (dims_.size() < 2) dims_.insert(dims_.begin(), CopyDim{});
  const CopyDim inner = dims_.back();
  const auto rows = dims_.end() - 2;
  if (inner.n == 1 || (inner.src == element_ && inner.dst == element_)) {
    inner_ = dims_.size() == 2 && rows->n == 1 ? Inner::kRun : Inner::kRows;
    return;
  }
  if (inner.src == 0 && inner.dst == element_) {
    inner_ = Inner::kFill;
    return;
  }
  inner_ = Inner::kStrided;
  if (inner.dst != element_ || inner.n < 4) return;
  for (auto it = dims_.begin(); it != dims_.end() - 1; ++it) {
    if (it->src != element_ || it->n < 4) continue;
    std::rotate(it, it + 1, dims_.end() - 1);  // the source's contiguous dimension becomes `rows`
    inner_ = Inner::kTranspose;
    return;
  }
}

void StridedCopy::runInner(const std::byte* src, std::byte* dst, const CopyDim& rows,
                           const CopyDim& inner) const {
  switch (inner_) {
    case Inner::kNothing:
      return;
    case Inner::kRun:
    case Inner::kRows:
      if (rows.n == 1) {
        std::memcpy(dst, src, static_cast<std::size_t>(inner.n * element_));
      } else {
        copyRows(src, dst, rows, static_cast<std::size_t>(inner.n * element_));
      }
      return;
    case Inner::kFill:
      return simd::copyKernels().fill[log2Of(element_)](src, dst, rows.n, inner.n, rows.src,
                                                        rows.dst);
    case Inner::kTranspose:
      return simd::copyKernels().transpose[log2Of(element_)](src, dst, rows.n, inner.n, inner.src,
                                                             rows.dst);
    case Inner::kStrided:
      return simd::copyKernels().strided[log2Of(element_)](src, dst, rows.n, inner.n, rows.src,
                                                           inner.src, rows.dst, inner.dst);
  }
}

void StridedCopy::runDims(const std::byte* src, std::byte* dst,
                          std::span<const CopyDim> dims) const {
  const auto inner = dims.last<2>();
  forEachOffset(dims.first(dims.size() - 2), [&](std::int64_t from, std::int64_t to) {
    runInner(src + from, dst + to, inner[0], inner[1]);
  });
}

void StridedCopy::run(const std::byte* src, std::byte* dst) const {
  if (inner_ == Inner::kNothing || (src == dst && inner_ == Inner::kRun)) return;
  runDims(src + src_offset_, dst + dst_offset_, dims_);
}

void StridedCopy::run(ThreadPool& pool, const std::byte* src, std::byte* dst) const {
  if (bytes_ < kParallelBytes) return run(src, dst);
  std::size_t split = 0;
  for (std::size_t i = 1; i < dims_.size(); ++i) {
    if (dims_[i].n > 2 * dims_[split].n) split = i;
  }
  const std::int64_t bytes_each = std::max<std::int64_t>(1, bytes_ / dims_[split].n);
  const std::int64_t grain = std::max<std::int64_t>(1, kParallelBytes / 2 / bytes_each);
  pool.parallelFor(dims_[split].n, grain, [&](std::int64_t begin, std::int64_t end) {
    std::array<CopyDim, kMostRank + 2> dims;
    std::copy(dims_.begin(), dims_.end(), dims.begin());
    dims[split].n = end - begin;
    runDims(src + src_offset_ + begin * dims[split].src,
            dst + dst_offset_ + begin * dims[split].dst, {dims.data(), dims_.size()});
  });
}

}  // namespace ipujax::engine
