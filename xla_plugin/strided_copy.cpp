#include "strided_copy.hpp"

#include <algorithm>
#include <vector>

#include "runtime/Backend.hpp"

namespace ipujax::plugin {

void stridedCopy(std::byte* to, std::span<const std::int64_t> to_strides, const std::byte* from,
                 std::span<const std::int64_t> from_strides, std::span<const std::int64_t> dims,
                 std::size_t element_bytes) {
  if (element_bytes == 0) return;
  std::vector<runtime::CopyDimension> walk;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    walk.push_back({dims[i], from_strides[i], to_strides[i]});
  }
  if (element_bytes > 8) {  // complex128
    walk.push_back({static_cast<std::int64_t>(element_bytes / 8), 8, 8});
    element_bytes = 8;
  }
  runtime::copyStrided(element_bytes, walk, from, to);
}

void denseStrides(std::span<const std::int64_t> dims, std::span<const std::int64_t> minor_to_major,
                  std::size_t element_bytes, std::span<std::int64_t> strides) {
  auto stride = static_cast<std::int64_t>(element_bytes);
  for (const auto axis : minor_to_major) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= std::max<std::int64_t>(dims[static_cast<std::size_t>(axis)], 1);
  }
}

void rowMajorStrides(std::span<const std::int64_t> dims, std::size_t element_bytes,
                     std::span<std::int64_t> strides) {
  auto stride = static_cast<std::int64_t>(element_bytes);
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(dims[i], 1);
  }
}

bool isRowMajor(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                std::size_t element_bytes) {
  auto stride = static_cast<std::int64_t>(element_bytes);
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

}  // namespace ipujax::plugin
