#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/simd/FloatMath.hpp"

/// Functions of integers that ElementwiseOps.def uses. Results that hardware leaves undefined are
/// XLA's: x / 0 = -1, x % 0 = x, lowest / -1 = lowest, shifts by the width or more give 0 or the
/// sign. Included by *.simd.cpp only.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

template <class T>
constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
template <class T>
constexpr T kLowest = std::numeric_limits<T>::min();

/// For up to 32 bits. For unsigned integers there is no instruction before AVX-512.
template <class T>
IPUJAX_INLINE double asDouble(T x) {
  if constexpr (std::is_same_v<T, std::uint32_t>)
    return static_cast<double>(static_cast<std::int32_t>(x ^ 0x80000000u)) + 2147483648.0;
  else
    return static_cast<double>(static_cast<std::int32_t>(x));
}

/// Sums up ever larger groups of bits (Knuth, The Art of Computer Programming 4A, 7.1.3).
template <class U>
IPUJAX_INLINE U onesOf(U x) {
  constexpr U kEvery = static_cast<U>(~U{0});
  x = static_cast<U>(x - ((x >> 1) & static_cast<U>(kEvery / 3)));
  x = static_cast<U>((x & static_cast<U>(kEvery / 5)) + ((x >> 2) & static_cast<U>(kEvery / 5)));
  x = static_cast<U>((x + (x >> 4)) & static_cast<U>(kEvery / 17));
  for (int width = 8; width < kBits<U>; width *= 2) x = static_cast<U>(x + (x >> width));
  return static_cast<U>(x & (2 * kBits<U> - 1));
}
/// x with all bits below its first one set. Recursive: a loop that is unrolled too late would stay
/// scalar.
template <class U, int kWidth = 1>
IPUJAX_INLINE U filledDown(U x) {
  if constexpr (kWidth < kBits<U>)
    return filledDown<U, 2 * kWidth>(static_cast<U>(x | (x >> kWidth)));
  else
    return x;
}
template <class T>
IPUJAX_INLINE int leadingZeros(T x) {
  using U = std::make_unsigned_t<T>;
  return kBits<U> - static_cast<int>(onesOf(filledDown(static_cast<U>(x))));
}

template <class T>
IPUJAX_INLINE T wideQuotientOf(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (a == kLowest<T> && b == -1) return a;
  }
  return static_cast<T>(a / b);
}
/// By a product of doubles, for which there are vector instructions. It takes |a| + 0.5, so that
/// two roundings reach no whole number.
template <class T>
IPUJAX_INLINE T quotientOf(T a, T b) {
  if constexpr (sizeof(T) > 4) {
    return wideQuotientOf(a, b);
  } else {
    using U = std::make_unsigned_t<T>;
    const bool is_simple = b == 0 || b == 1 || (std::is_signed_v<T> && b == static_cast<T>(-1));
    const double more = asDouble(a) + (a < 0 ? -0.5 : 0.5);
    const double whole = more * (1.0 / (is_simple ? 2.0 : asDouble(b)));
    const T simple = b == 0 ? static_cast<T>(-1) : b == 1 ? a : static_cast<T>(U{0} - U(a));
    return is_simple ? simple : static_cast<T>(static_cast<std::int32_t>(whole));
  }
}
template <class T>
IPUJAX_INLINE T remainderOf(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(U(a) - 1u * U(quotientOf(a, b)) * U(b));
}
template <class T>
IPUJAX_INLINE T powerOf(T a, T b) {
  std::uint64_t base = static_cast<std::uint64_t>(a);
  auto e = static_cast<std::uint64_t>(b);
  if constexpr (std::is_signed_v<T>) {
    if (b < 0) return a == 1 ? T(1) : (a == -1 ? ((b & 1) ? T(-1) : T(1)) : T(0));
  }
  std::uint64_t result = 1;
  for (; e != 0; e >>= 1) {
    if (e & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}
template <class T>
IPUJAX_INLINE T clampOf(T x, T low, T high) {
  const T y = x < low ? low : x;
  return y > high ? high : y;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
