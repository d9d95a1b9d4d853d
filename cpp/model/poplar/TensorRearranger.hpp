#pragma once
#include <cstddef>
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/Interval.hpp"
#include "poplar/Tensor.hpp"

namespace poplar {

/// An order of the elements of tensors of one size, and its inverse. Graph's
/// getSimplifyingRearranger makes one; an empty one rearranges nothing.
class TensorRearranger {
 public:
  TensorRearranger() = default;
  /// For the library: the elements at intervals[0] come first, then those at intervals[1], ...
  explicit TensorRearranger(std::vector<Interval> intervals);

  bool valid() const { return !intervals_.empty(); }
  /// [n]: the n elements of `t` in the new order; throws poplar_error for another size.
  Tensor rearrange(const Tensor& t) const;
  /// [n]: the elements of a rearranged tensor in the original order.
  Tensor undoRearrangement(const Tensor& t) const;
  /// Maps intervals to the other order, and merges adjacent ones.
  std::vector<Interval> rearrange(ArrayRef<Interval> is) const;
  std::vector<Interval> undoRearrangement(ArrayRef<Interval> is) const;

 private:
  std::vector<Interval> intervals_;  ///< of the original order, in the new order
  std::vector<Interval> inverse_;    ///< of the new order, in the original order
};

}  // namespace poplar
