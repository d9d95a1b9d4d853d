#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

/// Copies rows x cols elements of one size. All strides are in bytes.
/// transpose: src element (r, c) is at r * size + c * src_col, dst's at r * dst_row + c * size.
/// strided: any strides for rows and columns. fill: each row is one source element, repeated.
struct CopyKernels {
  using Transpose = void (*)(const std::byte* src, std::byte* dst, std::int64_t rows,
                             std::int64_t cols, std::int64_t src_col, std::int64_t dst_row);
  using Strided = void (*)(const std::byte* src, std::byte* dst, std::int64_t rows,
                           std::int64_t cols, std::int64_t src_row, std::int64_t src_col,
                           std::int64_t dst_row, std::int64_t dst_col);
  using Fill = void (*)(const std::byte* src, std::byte* dst, std::int64_t rows, std::int64_t cols,
                        std::int64_t src_row, std::int64_t dst_row);
  Transpose transpose[4];  ///< by log2 of the element size
  Strided strided[4];
  Fill fill[4];
};

IPUJAX_DECLARE_SIMD(extern const CopyKernels kCopyKernels)

/// The kernels for this CPU.
[[gnu::noinline]] inline const CopyKernels& copyKernels() {
  static const CopyKernels& picked = IPUJAX_PICK(kCopyKernels);
  return picked;
}

}  // namespace ipujax::engine::simd
