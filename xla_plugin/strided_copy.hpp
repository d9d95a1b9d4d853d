#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ipujax::plugin {

/// Copies an array of `dims` elements of `element_bytes` between any two byte-strided layouts.
/// Strides may be zero (source only) or negative; the pointers are at index 0, 0, ...
void stridedCopy(std::byte* to, std::span<const std::int64_t> to_strides, const std::byte* from,
                 std::span<const std::int64_t> from_strides, std::span<const std::int64_t> dims,
                 std::size_t element_bytes);

/// Byte strides of a dense array whose dimensions are laid out in `minor_to_major` order.
void denseStrides(std::span<const std::int64_t> dims, std::span<const std::int64_t> minor_to_major,
                  std::size_t element_bytes, std::span<std::int64_t> strides);

/// Byte strides of a dense row-major array.
void rowMajorStrides(std::span<const std::int64_t> dims, std::size_t element_bytes,
                     std::span<std::int64_t> strides);

/// True when the strides are those of a dense row-major array; dimensions of size 1 are ignored.
bool isRowMajor(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                std::size_t element_bytes);

}  // namespace ipujax::plugin
