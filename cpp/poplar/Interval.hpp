#pragma once
#include <cstddef>
#include <ostream>

namespace poplar {

/// Elements [begin, end) of a flattened tensor.
class Interval {
 public:
  constexpr Interval() = default;
  constexpr Interval(std::size_t begin, std::size_t end) : lower_(begin), upper_(end) {}
  constexpr std::size_t begin() const { return lower_; }
  constexpr std::size_t end() const { return upper_; }
  constexpr std::size_t lower() const { return lower_; }
  constexpr std::size_t upper() const { return upper_; }
  constexpr std::size_t size() const { return upper_ - lower_; }

  friend constexpr bool operator==(const Interval& a, const Interval& b) {
    return a.lower_ == b.lower_ && a.upper_ == b.upper_;
  }
  friend constexpr bool operator!=(const Interval& a, const Interval& b) { return !(a == b); }
  friend constexpr bool operator<(const Interval& a, const Interval& b) {
    return a.lower_ != b.lower_ ? a.lower_ < b.lower_ : a.upper_ < b.upper_;
  }
  friend constexpr bool operator>(const Interval& a, const Interval& b) { return b < a; }
  friend constexpr bool operator<=(const Interval& a, const Interval& b) { return !(b < a); }
  friend constexpr bool operator>=(const Interval& a, const Interval& b) { return !(a < b); }

 private:
  std::size_t lower_ = 0;
  std::size_t upper_ = 0;
};

inline std::ostream& operator<<(std::ostream& os, const Interval& interval) {
  return os << '[' << interval.begin() << ", " << interval.end() << ')';
}

}  // namespace poplar
