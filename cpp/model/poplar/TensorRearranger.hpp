#pragma once
#include <cstddef>
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/Interval.hpp"
#include "poplar/Tensor.hpp"

namespace poplar {

/// An order of the elements of tensors of one size, and the way back. Graph's
/// getSimplifyingRearranger makes one; an empty one rearranges nothing.
class TensorRearranger {
 public:
  TensorRearranger() = default;
  /// For the library: what was at intervals[0], intervals[1] ... comes first, second ...
  explicit TensorRearranger(std::vector<Interval> intervals);

  bool valid() const { return !intervals_.empty(); }
  /// [n]: the elements of `t`, of n in all, in the new order; throws poplar_error for another size.
  Tensor rearrange(const Tensor& t) const;
  /// [n]: those of a rearranged tensor in the order from before.
  Tensor undoRearrangement(const Tensor& t) const;
  /// Where the elements of intervals are in the other order, merged where they follow each other.
  std::vector<Interval> rearrange(ArrayRef<Interval> is) const;
  std::vector<Interval> undoRearrangement(ArrayRef<Interval> is) const;

 private:
  std::vector<Interval> intervals_;  ///< of the first order, as the second has them
  std::vector<Interval> inverse_;    ///< of the second order, as the first has them
};

}  // namespace poplar
