#pragma once
// How popops' reductions combine two values, for the codelets of its vertices.
#include <popops/codelets/elementwise_results.h>

#include <popops/OperationDef.hpp>

namespace popops {

/// max + log(1 + exp(min - max)), which does not overflow.
inline float logAdded(float a, float b) {
  const float high = a < b ? b : a, low = a < b ? a : b;
  return high + std::log(1.0f + std::exp(low - high));
}

template <Operation op, class T>
T reduced(T a, T b) {
  using expr::BinaryOpType;
  if constexpr (op == Operation::ADD) {
    return elementwise::apply<BinaryOpType::ADD, T>(a, b);
  } else if constexpr (op == Operation::MUL) {
    return elementwise::apply<BinaryOpType::MULTIPLY, T>(a, b);
  } else if constexpr (op == Operation::MIN) {
    return elementwise::apply<BinaryOpType::MINIMUM, T>(a, b);
  } else if constexpr (op == Operation::MAX) {
    return elementwise::apply<BinaryOpType::MAXIMUM, T>(a, b);
  } else if constexpr (op == Operation::LOGICAL_AND) {
    return elementwise::apply<BinaryOpType::LOGICAL_AND, T>(a, b);
  } else if constexpr (op == Operation::LOGICAL_OR) {
    return elementwise::apply<BinaryOpType::LOGICAL_OR, T>(a, b);
  } else if constexpr (op == Operation::SQUARE_ADD) {
    return reduced<Operation::ADD, T>(a, reduced<Operation::MUL, T>(b, b));
  } else {
    return static_cast<T>(logAdded(static_cast<float>(a), static_cast<float>(b)));
  }
}

}  // namespace popops
