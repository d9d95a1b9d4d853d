#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/Rank.hpp"
#include "engine/ThreadPool.hpp"

namespace ipujax::engine {

/// One dimension of a copy: extent and byte strides on both sides.
struct CopyDim {
  std::int64_t n = 1;
  std::int64_t src = 0;
  std::int64_t dst = 0;
};

/// The same walk in fewer dimensions: sorted by destination stride, longest first, without extents
/// of 1, and with neighbours merged if both sides can walk them as one.
std::vector<CopyDim> orderedAndMerged(std::span<const CopyDim> dims);

/// Calls fn(source offset, destination offset), in bytes, for each index of `dims`, the last
/// fastest. At most kMostRank dimensions, none of extent 0.
template <class F>
void forEachOffset(std::span<const CopyDim> dims, const F& fn) {
  std::int64_t src = 0;
  std::int64_t dst = 0;
  if (dims.empty()) return fn(src, dst);
  std::int64_t index[kMostRank];
  for (std::size_t d = 0; d < dims.size(); ++d) index[d] = 0;
  for (;;) {
    fn(src, dst);
    for (std::size_t d = dims.size();;) {
      if (d-- == 0) return;
      src += dims[d].src;
      dst += dims[d].dst;
      if (++index[d] < dims[d].n) break;
      src -= dims[d].src * dims[d].n;
      dst -= dims[d].dst * dims[d].n;
      index[d] = 0;
    }
  }
}

/// A planned copy between two strided views of one shape: dimensions ordered by the destination,
/// merged, and the innermost ones given to a run, fill, transpose or strided kernel. Immutable
/// after construction; `run` allocates nothing. The views must not overlap unless they are equal.
class StridedCopy {
 public:
  /// Strides are in elements; 0 broadcasts (source), negative reverses. Throws poplar_error for
  /// ranks that differ and for element sizes other than 1, 2, 4 and 8.
  StridedCopy(std::size_t element_bytes, std::span<const std::int64_t> shape,
              std::span<const std::int64_t> src_strides, std::span<const std::int64_t> dst_strides);
  /// The same for dimensions with strides in bytes, which need not be multiples of the element.
  StridedCopy(std::size_t element_bytes, std::span<const CopyDim> dims);

  /// src and dst point at the element at index 0, 0, ...
  void run(const std::byte* src, std::byte* dst) const;
  void run(ThreadPool& pool, const std::byte* src, std::byte* dst) const;
  std::int64_t bytes() const { return bytes_; }

 private:
  enum class Inner : std::uint8_t { kNothing, kRun, kRows, kFill, kTranspose, kStrided };
  void widen();
  void chooseInner();
  void runDims(const std::byte* src, std::byte* dst, std::span<const CopyDim> dims) const;
  void runInner(const std::byte* src, std::byte* dst, const CopyDim& rows,
                const CopyDim& inner) const;

  std::vector<CopyDim> dims_;  ///< outermost first; the last two are the inner kernel's
  std::int64_t src_offset_ = 0;
  std::int64_t dst_offset_ = 0;
  std::int64_t element_ = 1;
  std::int64_t bytes_ = 0;
  Inner inner_ = Inner::kNothing;
};

}  // namespace ipujax::engine
