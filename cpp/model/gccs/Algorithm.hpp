#pragma once
#include <type_traits>

/// Arithmetic on sizes. Operands are positive, the divisor is not zero.
namespace gccs {

template <typename A, typename B>
constexpr std::common_type_t<A, B> floordiv(A a, B b) {
  return a / b;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> ceildiv(A a, B b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
/// The largest multiple of `b` that is at most `a`, and the smallest that is at least `a`.
template <typename A, typename B>
constexpr std::common_type_t<A, B> alignPrev(A a, B b) {
  return floordiv(a, b) * b;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> alignNext(A a, B b) {
  return ceildiv(a, b) * b;
}

}  // namespace gccs
