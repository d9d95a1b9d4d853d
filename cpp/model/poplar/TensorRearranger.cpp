#include "poplar/TensorRearranger.hpp"

#include <algorithm>
#include <numeric>

#include "poplar/exceptions.hpp"

namespace poplar {
namespace {

void append(std::vector<Interval>& intervals, Interval next) {
  if (!intervals.empty() && intervals.back().end() == next.begin())
    intervals.back() = {intervals.back().begin(), next.end()};
  else
    intervals.push_back(next);
}

/// Inverse of `order`: its intervals sorted by begin, as positions in `order`.
std::vector<Interval> inverseOf(const std::vector<Interval>& order) {
  std::vector<std::size_t> starts(order.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    starts[i] = at;
    at += order[i].size();
  }
  std::vector<std::size_t> by_begin(order.size());
  std::iota(by_begin.begin(), by_begin.end(), 0u);
  std::ranges::sort(by_begin, {}, [&](std::size_t i) { return order[i].begin(); });
  std::vector<Interval> inverse;
  for (const std::size_t i : by_begin) append(inverse, {starts[i], starts[i] + order[i].size()});
  return inverse;
}

/// Maps the intervals `is` of one order to the other, given the inverse of the mapping.
std::vector<Interval> mapped(const std::vector<Interval>& inverse, ArrayRef<Interval> is) {
  std::vector<Interval> result;
  for (const Interval& interval : is) {
    std::size_t at = 0;
    for (const Interval& part : inverse) {
      const std::size_t begin = std::max(interval.begin(), at);
      const std::size_t end = std::min(interval.end(), at + part.size());
      if (begin < end) append(result, {part.begin() + begin - at, part.begin() + end - at});
      at += part.size();
    }
  }
  return result;
}

Tensor inOrder(const std::vector<Interval>& order, const Tensor& t) {
  const std::size_t size = std::accumulate(
      order.begin(), order.end(), std::size_t{0},
      [](std::size_t sum, const Interval& interval) { return sum + interval.size(); });
  if (t.numElements() != size)
    throw poplar_error("[TensorRearranger] needs a tensor of " + std::to_string(size) +
                       " elements; got " + t.shapeToString() +
                       ". Use one of the size of that it was made for.");
  return concat(t.flatten().slices(order));
}

}  // namespace

TensorRearranger::TensorRearranger(std::vector<Interval> intervals)
    : intervals_(std::move(intervals)), inverse_(inverseOf(intervals_)) {}

Tensor TensorRearranger::rearrange(const Tensor& t) const {
  return valid() ? inOrder(intervals_, t) : t;
}
Tensor TensorRearranger::undoRearrangement(const Tensor& t) const {
  return valid() ? inOrder(inverse_, t) : t;
}
std::vector<Interval> TensorRearranger::rearrange(ArrayRef<Interval> is) const {
  return valid() ? mapped(inverse_, is) : is.cloneAsVector();
}
std::vector<Interval> TensorRearranger::undoRearrangement(ArrayRef<Interval> is) const {
  return valid() ? mapped(intervals_, is) : is.cloneAsVector();
}

}  // namespace poplar
