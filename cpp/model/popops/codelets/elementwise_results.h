#pragma once
// What popops' operations compute, for the codelets of its vertices. A separate header, since the
// model reads the classes of vertices from a text without such macros.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <poplar/HalfFloat.hpp>
#include <popops/ExprOp.hpp>
#include <type_traits>

namespace popops {
namespace elementwise {

using ipujax::engine::expr::Op;

#define FUNCTION(name, ...) __VA_ARGS__
#include <popops/codelets/elementwise_functions.h>
#undef FUNCTION

/// The results of an operation, from the rows of ElementwiseOps.def; of() is void if the operation
/// has none for the type.
template <Op op>
struct OfFloats;
template <Op op>
struct OfIntegers;
template <Op op>
struct OfBools;

#define FUNCTIONS(Name, operands, functions) \
  template <>                                \
  struct OfFloats<Op::k##Name> {             \
    template <class T>                       \
    static auto of(T a, T b, T c) {          \
      functions                              \
    }                                        \
  };
#define F(...) return __VA_ARGS__;
#define ANGLE(fast, slow) return slow;
#define LOOPS(choose) return choose(a, b);
#include <engine/ops/ElementwiseOps.def>

#define FUNCTIONS(Name, operands, functions)  \
  template <>                                 \
  struct OfIntegers<Op::k##Name> {            \
    template <class T>                        \
    static auto of(T a, T b, T c) {           \
      using U = std::make_unsigned_t<T>;      \
      functions                               \
    }                                         \
  };
#define I(...) return __VA_ARGS__;
#include <engine/ops/ElementwiseOps.def>

#define FUNCTIONS(Name, operands, functions) \
  template <>                                \
  struct OfBools<Op::k##Name> {              \
    template <class T>                       \
    static auto of(T a, T b, T c) {          \
      functions                              \
    }                                        \
  };
#define B(...) return __VA_ARGS__;
#include <engine/ops/ElementwiseOps.def>

/// The operation of an enumerator of popops::expr.
template <auto kType>
constexpr Op opOf = static_cast<Op>(static_cast<int>(kType));

/// Halves are computed in float and rounded.
template <auto kType, class T>
auto computed(T a, T b, T c) {
  constexpr Op op = opOf<kType>;
  if constexpr (std::is_same_v<T, bool>) {
    return OfBools<op>::of(a, b, c);
  } else if constexpr (std::is_integral_v<T>) {
    return OfIntegers<op>::of(a, b, c);
  } else {
    return OfFloats<op>::of(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  }
}

template <auto kType, class T>
struct Result {
  using Computed = decltype(computed<kType, T>(T(), T(), T()));
  static_assert(!std::is_void_v<Computed>, "popops has no such operation on this type");
  using Type = std::conditional_t<std::is_same_v<Computed, bool>, bool, T>;
};

/// The result for one, two or three operands.
template <auto kType, class T>
typename Result<kType, T>::Type apply(T a, T b, T c) {
  return static_cast<typename Result<kType, T>::Type>(computed<kType, T>(a, b, c));
}
template <auto kType, class T>
auto apply(T a, T b) {
  return apply<kType, T>(a, b, b);
}
template <auto kType, class T>
auto apply(T a) {
  return apply<kType, T>(a, a, a);
}

/// Truncates and saturates floats to integers, as popops::cast does.
template <class To, class From>
To castTo(From x) {
  constexpr bool is_float = !std::is_integral_v<From>;
  if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (is_float && std::is_integral_v<To>) {
    return toInteger<To>(static_cast<float>(x));
  } else if constexpr (!std::is_integral_v<To>) {
    return static_cast<To>(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace elementwise
}  // namespace popops
