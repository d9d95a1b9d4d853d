#pragma once
#include <cstddef>
#include <ostream>

namespace poplar {

/// Elements [begin, end) of a flattened tensor.
template <class T>
struct GenericInterval {
  constexpr GenericInterval() = default;
  constexpr GenericInterval(T begin, T end) : lower_(begin), upper_(end) {}
  constexpr const T& begin() const { return lower_; }
  constexpr const T& end() const { return upper_; }
  constexpr const T& lower() const { return lower_; }
  constexpr const T& upper() const { return upper_; }
  constexpr T size() const { return upper_ - lower_; }

  friend constexpr bool operator==(const GenericInterval& a, const GenericInterval& b) {
    return a.lower_ == b.lower_ && a.upper_ == b.upper_;
  }
  friend constexpr bool operator!=(const GenericInterval& a, const GenericInterval& b) {
    return !(a == b);
  }
  friend constexpr bool operator<(const GenericInterval& a, const GenericInterval& b) {
    return a.lower_ != b.lower_ ? a.lower_ < b.lower_ : a.upper_ < b.upper_;
  }
  friend constexpr bool operator>(const GenericInterval& a, const GenericInterval& b) {
    return b < a;
  }
  friend constexpr bool operator<=(const GenericInterval& a, const GenericInterval& b) {
    return !(b < a);
  }
  friend constexpr bool operator>=(const GenericInterval& a, const GenericInterval& b) {
    return !(a < b);
  }
  friend std::ostream& operator<<(std::ostream& os, const GenericInterval& interval) {
    return os << '[' << interval.begin() << ", " << interval.end() << ')';
  }

 private:
  T lower_{};
  T upper_{};
};

using Interval = GenericInterval<std::size_t>;

}  // namespace poplar
