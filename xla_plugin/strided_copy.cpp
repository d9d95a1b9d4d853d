#include "strided_copy.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ipujax::plugin {
namespace {

struct Axis {
  std::int64_t size;
  std::int64_t to;
  std::int64_t from;
};

/// Drops axes of size 1 and merges neighbours that both sides walk as one.
std::vector<Axis> simplify(std::span<const std::int64_t> to, std::span<const std::int64_t> from,
                           std::span<const std::int64_t> dims) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const Axis next{dims[i], to[i], from[i]};
    if (!axes.empty() && axes.back().to == next.to * next.size &&
        axes.back().from == next.from * next.size) {
      axes.back() = {axes.back().size * next.size, next.to, next.from};
    } else {
      axes.push_back(next);
    }
  }
  return axes;
}

template <typename T>
void copyRow(std::byte* to, const std::byte* from, const Axis& axis) {
  for (std::int64_t i = 0; i < axis.size; ++i) {
    T value;
    std::memcpy(&value, from + i * axis.from, sizeof(T));
    std::memcpy(to + i * axis.to, &value, sizeof(T));
  }
}

void copyRow(std::byte* to, const std::byte* from, const Axis& axis, std::size_t bytes) {
  const auto dense = static_cast<std::int64_t>(bytes);
  if (axis.to == dense && axis.from == dense) {
    std::memcpy(to, from, bytes * static_cast<std::size_t>(axis.size));
    return;
  }
  switch (bytes) {
    case 1:
      return copyRow<std::uint8_t>(to, from, axis);
    case 2:
      return copyRow<std::uint16_t>(to, from, axis);
    case 4:
      return copyRow<std::uint32_t>(to, from, axis);
    case 8:
      return copyRow<std::uint64_t>(to, from, axis);
    default:
      for (std::int64_t i = 0; i < axis.size; ++i) {
        std::memcpy(to + i * axis.to, from + i * axis.from, bytes);
      }
  }
}

void copyAxes(std::byte* to, const std::byte* from, std::span<const Axis> axes, std::size_t bytes) {
  if (axes.size() == 1) return copyRow(to, from, axes[0], bytes);
  for (std::int64_t i = 0; i < axes[0].size; ++i) {
    copyAxes(to + i * axes[0].to, from + i * axes[0].from, axes.subspan(1), bytes);
  }
}

}  // namespace

void stridedCopy(std::byte* to, std::span<const std::int64_t> to_strides, const std::byte* from,
                 std::span<const std::int64_t> from_strides, std::span<const std::int64_t> dims,
                 std::size_t element_bytes) {
  if (element_bytes == 0 || std::ranges::find(dims, 0) != dims.end()) return;
  const auto axes = simplify(to_strides, from_strides, dims);
  if (axes.empty()) {
    std::memcpy(to, from, element_bytes);
  } else {
    copyAxes(to, from, axes, element_bytes);
  }
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
