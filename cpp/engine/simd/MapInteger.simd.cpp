#include <limits>
#include <type_traits>

#include "engine/simd/MapLoops.hpp"

/// Integers and bool (held as 0 or 1 in a byte). Where hardware leaves a result open it is XLA's:
/// x / 0 = -1, x % 0 = x, lowest / -1 = lowest, shifts by the width or more give 0 or the sign.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

template <class T>
constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
template <class T>
constexpr T kLowest = std::numeric_limits<T>::min();

template <class T>
IPUJAX_INLINE int leadingZeros(T x) {
  using U = std::make_unsigned_t<T>;
  const auto u = static_cast<std::uint64_t>(static_cast<U>(x));
  return u == 0 ? kBits<T> : __builtin_clzll(u) - (64 - kBits<T>);
}

template <class T>
IPUJAX_INLINE T quotientOf(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (a == kLowest<T> && b == -1) return a;
  }
  return static_cast<T>(a / b);
}
template <class T>
IPUJAX_INLINE T remainderOf(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
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

template <class T>
MapFn integer(expr::Op op, unsigned scalars) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define I(...) IPUJAX_LOOP(T, __VA_ARGS__)
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

MapFn boolean(expr::Op op, unsigned scalars) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define B(...) IPUJAX_LOOP(std::uint8_t, __VA_ARGS__)
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}
}  // namespace

MapFn findInteger(expr::Op op, ElementType type, unsigned scalars) {
  if (type == ElementType::kBool) return boolean(op, scalars);
  return withInteger(type, [&]<class T>(T) { return integer<T>(op, scalars); });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
