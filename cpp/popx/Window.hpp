#pragma once
#include <cstdint>
#include <vector>

#include "poplar/Tensor.hpp"

namespace popx {

/// The window of an XLA reduce_window: one entry per dimension of the operand.
struct Window {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> base_dilations;
  std::vector<std::int64_t> window_dilations;
  std::vector<std::int64_t> padding_low;  ///< may be negative: elements cut off
  std::vector<std::int64_t> padding_high;

  /// Strides and dilations of 1, no padding.
  static Window of(std::vector<std::int64_t> sizes) {
    const std::vector<std::int64_t> ones(sizes.size(), 1), zeros(sizes.size(), 0);
    return {std::move(sizes), ones, ones, ones, zeros, zeros};
  }
};

}  // namespace popx
