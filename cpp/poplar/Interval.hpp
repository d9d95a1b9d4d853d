#pragma once
#include <cstddef>

namespace poplar {

/// Elements [begin, end) of a flattened tensor.
struct Interval {
  std::size_t lower = 0;
  std::size_t upper = 0;

  Interval() = default;
  Interval(std::size_t begin, std::size_t end) : lower(begin), upper(end) {}
  std::size_t begin() const { return lower; }
  std::size_t end() const { return upper; }
  std::size_t size() const { return upper - lower; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

}  // namespace poplar
