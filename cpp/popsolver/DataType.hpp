#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <limits>
#include <ostream>
#include <type_traits>

#include "poputil/exceptions.hpp"

namespace popsolver {

/// The value of a variable: 0 to 2^64 - 1. Throws poplibs_error for what is none.
class DataType {
 public:
  using UnderlyingType = std::uint64_t;

  DataType() = default;
  template <typename T, class = std::enable_if_t<std::is_integral_v<T>>>
  constexpr DataType(T x) : value_(static_cast<UnderlyingType>(x)) {  // NOLINT: implicit
    if constexpr (std::is_signed_v<T>)
      if (x < 0)
        throw poputil::poplibs_error("[DataType] needs a number that is not negative. Pass one.");
  }
  explicit constexpr DataType(double x) : value_(static_cast<UnderlyingType>(x)) {
    if (!(x >= 0 && x < 18446744073709551616.0))
      throw poputil::poplibs_error("[DataType] needs a number in [0, 2^64). Pass one.");
  }
  static constexpr DataType min() { return DataType{UnderlyingType{0}}; }
  static constexpr DataType max() { return std::numeric_limits<UnderlyingType>::max(); }

  constexpr UnderlyingType operator*() const { return value_; }
  explicit constexpr operator UnderlyingType() const { return value_; }
  explicit operator UnderlyingType&() { return value_; }
  template <typename T>
  T getAs() const {
    const T x = static_cast<T>(value_);
    if (x < T{0} || static_cast<UnderlyingType>(x) != value_)
      throw poputil::poplibs_error("[DataType::getAs] needs a type that can hold " +
                                   std::to_string(value_) + ". Use a wider one.");
    return x;
  }

  DataType& operator++() { return *this += 1; }
  DataType& operator--() { return *this = *this - 1; }
  DataType operator++(int) { return ++*this - 1; }
  DataType operator--(int) { return --*this + 1; }
  DataType& operator+=(DataType r) { return *this = *this + r; }
  DataType& operator*=(DataType r) { return *this = *this * r; }

  friend constexpr DataType operator+(DataType l, DataType r) { return l.value_ + r.value_; }
  friend constexpr DataType operator-(DataType l, DataType r) { return l.value_ - r.value_; }
  friend constexpr DataType operator*(DataType l, DataType r) { return l.value_ * r.value_; }
  friend constexpr DataType operator/(DataType l, DataType r) { return l.value_ / r.value_; }
  friend constexpr DataType operator%(DataType l, DataType r) { return l.value_ % r.value_; }
  friend constexpr bool operator<(DataType l, DataType r) { return l.value_ < r.value_; }
  friend constexpr bool operator>(DataType l, DataType r) { return l.value_ > r.value_; }
  friend constexpr bool operator<=(DataType l, DataType r) { return l.value_ <= r.value_; }
  friend constexpr bool operator>=(DataType l, DataType r) { return l.value_ >= r.value_; }
  friend constexpr bool operator==(DataType l, DataType r) { return l.value_ == r.value_; }
  friend constexpr bool operator!=(DataType l, DataType r) { return l.value_ != r.value_; }
  friend std::ostream& operator<<(std::ostream& os, DataType x) { return os << x.value_; }
  friend std::istream& operator>>(std::istream& is, DataType& x) { return is >> x.value_; }

 private:
  UnderlyingType value_ = 0;
};

}  // namespace popsolver

namespace std {
template <>
struct hash<popsolver::DataType> {
  std::size_t operator()(const popsolver::DataType& x) const {
    return std::hash<std::uint64_t>()(*x);
  }
};
}  // namespace std
