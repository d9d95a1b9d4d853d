#pragma once
#include <cstdint>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/image/Step.hpp"
#include "engine/image/StepCheck.hpp"

namespace ipujax::engine {

/// The window of an XLA reduce_window: one entry per dimension of the operand.
struct Window {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> base_dilations;
  std::vector<std::int64_t> window_dilations;
  std::vector<std::int64_t> padding_low;  ///< may be negative: elements cut off
  std::vector<std::int64_t> padding_high;

  /// Strides and dilations of 1, no padding.
  static Window of(std::vector<std::int64_t> sizes);
  std::size_t rank() const { return sizes.size(); }
  /// Throws poplar_error if the lengths differ from `rank` or a number is invalid.
  void check(const char* where, std::size_t rank) const;
  std::int64_t outputSize(std::size_t dim, std::int64_t input) const;
  std::int64_t volume() const;
  /// True if each output along this dimension is the input at the same place.
  bool isPlain(std::size_t dim, std::int64_t input) const;

  Attributes::Integers toIntegers() const;
  static Window from(const Attributes::Integers& integers);
  /// The attribute "window" of a step, checked to make its outputs from these inputs.
  static Window check(const StepCheck& check, const OperandCheck& in, const OperandCheck& out);
};

/// The inputs under one output's window along one dimension: `first`, `first + step`, ...
struct Taps {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
};

/// One dimension of a window over a strided operand; strides are in elements.
struct WindowDim {
  std::int64_t n = 1;  ///< inputs
  std::int64_t m = 1;  ///< outputs
  std::int64_t in_stride = 0;
  std::int64_t out_stride = 0;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t base_dilation = 1;
  std::int64_t window_dilation = 1;
  std::int64_t low = 0;
  bool plain = true;

  Taps tapsOf(std::int64_t output) const;
  /// The input under tap k of an output, or -1 in the padding or between dilated elements.
  std::int64_t inputAt(std::int64_t output, std::int64_t k) const {
    const std::int64_t at = output * stride - low + k * window_dilation;
    if (at < 0 || at % base_dilation != 0 || at / base_dilation >= n) return -1;
    return at / base_dilation;
  }
};
std::vector<WindowDim> windowDims(const Window& window, const OperandDesc& in,
                                  const OperandDesc& out);

}  // namespace ipujax::engine
