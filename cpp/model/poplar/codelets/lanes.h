#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ipu_cycles.h"
#include "ipudef.h"

// Elementwise functions of float, half and short vectors.
namespace ipujax_lanes {

template <class V>
struct Lanes {
  static constexpr int count = 1;
};
#define IPUJAX_LANES(vector, n)          \
  template <>                            \
  struct Lanes<ipujax_vectors::vector> { \
    static constexpr int count = n;      \
  };
IPUJAX_LANES(half2, 2)
IPUJAX_LANES(half4, 4)
IPUJAX_LANES(half8, 8)
IPUJAX_LANES(float2, 2)
IPUJAX_LANES(float4, 4)
#undef IPUJAX_LANES

template <class V>
constexpr bool is_number = std::is_same_v<V, float> || std::is_same_v<V, half> ||
                           (Lanes<V>::count > 1);
template <class V>
using Number = std::enable_if_t<is_number<V>, V>;
/// Number type of an argument: its own, or its element's for a field (`Input<float>`); else void.
template <class T, class = void>
struct NumberIn {
  using type = std::conditional_t<is_number<T>, T, void>;
};
template <class T>
struct NumberIn<T, std::enable_if_t<std::is_class_v<T> && !is_number<T>,
                                    std::void_t<decltype(*std::declval<const T&>())>>> {
  using type = typename NumberIn<std::decay_t<decltype(*std::declval<const T&>())>>::type;
};
template <class V, class T>
constexpr bool counts_as = std::is_same_v<typename NumberIn<T>::type, V> ||
                           (std::is_void_v<typename NumberIn<T>::type> && std::is_arithmetic_v<T> &&
                            Lanes<V>::count == 1);
template <class T, class... Ts>
struct FirstNumber {
  using type = std::conditional_t<std::is_void_v<typename NumberIn<T>::type>,
                                  typename FirstNumber<Ts...>::type, typename NumberIn<T>::type>;
};
template <class T>
struct FirstNumber<T> : NumberIn<T> {};
/// The common type of arguments that are not all of one number type: fields count as their
/// elements, integers and doubles as the first number.
template <class... Ts>
using Shared = std::enable_if_t<is_number<typename FirstNumber<Ts...>::type> &&
                                    (counts_as<typename FirstNumber<Ts...>::type, Ts> && ...) &&
                                    !(std::is_same_v<typename FirstNumber<Ts...>::type, Ts> && ...),
                                typename FirstNumber<Ts...>::type>;
/// Whether V is half or a vector of halves.
template <class V>
constexpr bool is_half = is_number<V> && sizeof(V) == 2 * Lanes<V>::count;

// Issue slots of an operation. Sources: PopLibs' instruction constants for exp, ln, tanh, sigm and
// divisions; other transcendental instructions are assumed to cost the same.
/// One instruction for each 64 bits.
template <class V>
constexpr unsigned simple = (sizeof(V) + 7) / 8;
/// kHalf2 slots for each half2, or kFloat slots for each float.
template <class V, unsigned kHalf2, unsigned kFloat>
constexpr unsigned slots = (is_half<V> ? kHalf2 : kFloat) * ((sizeof(V) + 3) / 4);
/// A function of some twenty instructions for each element: an assumption, between PopLibs'
/// estimates for a square root and a logarithm.
template <class V>
constexpr unsigned software = 20 * Lanes<V>::count;

template <class V>
float lane(const V& v, int i) {
  if constexpr (Lanes<V>::count == 1) {
    (void)i;
    return float(v);
  } else {
    return float(v[i]);
  }
}

/// Applies f elementwise to vectors of one length or scalars, in float, and rounds to the elements
/// of V.
template <class V, class F, class... Vs>
V each(F f, const Vs&... operands) {
  if constexpr (Lanes<V>::count == 1) {
    return V(f(float(operands)...));
  } else {
    V made{};
    for (int i = 0; i < Lanes<V>::count; ++i) made[i] = f(lane(operands, i)...);
    return made;
  }
}

/// Reinterprets the bits of a value as another type of the same size.
template <class To, class From>
To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bits of one size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// Applies f to the 32-bit words of two values.
template <class V, class F>
V words(F f, const V& x, const V& y) {
  std::uint32_t a[sizeof(V) / 4], b[sizeof(V) / 4];
  std::memcpy(a, &x, sizeof(V));
  std::memcpy(b, &y, sizeof(V));
  for (std::size_t i = 0; i < sizeof(V) / 4; ++i) a[i] = f(a[i], b[i]);
  V made;
  std::memcpy(&made, a, sizeof(V));
  return made;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace ipujax_lanes
