#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ipujax::engine {

constexpr std::size_t kMaxCopyRank = 32;

/// One dimension of a copy: extent and byte strides on both sides.
struct CopyDim {
  std::int64_t n = 1;
  std::int64_t src = 0;
  std::int64_t dst = 0;
};

/// The same walk in fewer dimensions: ordered by the destination, longest stride first, neighbours
/// that both sides walk as one merged, extents of 1 dropped.
std::vector<CopyDim> orderedAndMerged(std::span<const CopyDim> dims);

/// Calls fn(source offset, destination offset), in bytes, for each index of `dims`, the last
/// fastest. At most kMaxCopyRank dimensions, none of extent 0.
template <class F>
void forEachOffset(std::span<const CopyDim> dims, const F& fn) {
  std::int64_t src = 0;
  std::int64_t dst = 0;
  if (dims.empty()) return fn(src, dst);
  std::int64_t index[kMaxCopyRank];
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

}  // namespace ipujax::engine
