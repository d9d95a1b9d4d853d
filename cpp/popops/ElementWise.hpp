#pragma once
#include <type_traits>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"

namespace popops {

/// Applies an expression to the elements of tensors, which are broadcast to a common shape by
/// numpy's rules; `_1` is ts[0]. Cost: popops/ElementWiseCost.hpp. Options: none has an effect.
poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {});

/// The same, with the result written to ts[0].
void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                const poplar::OptionFlags& options = {});

/// The same, with the result written to `out`.
void mapWithOutput(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, const poplar::Tensor& out,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {});

#define IPUJAX_POPOPS_TAIL         \
  poplar::program::Sequence &prog, \
      const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}

inline poplar::Tensor map(poplar::Graph& graph, expr::UnaryOpType op, const poplar::Tensor& t,
                          IPUJAX_POPOPS_TAIL) {
  return map(graph, expr::UnaryOp(op, expr::_1), {t}, prog, debugContext, options);
}
inline poplar::Tensor map(poplar::Graph& graph, expr::BinaryOpType op, const poplar::Tensor& a,
                          const poplar::Tensor& b, IPUJAX_POPOPS_TAIL) {
  return map(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, debugContext, options);
}
inline poplar::Tensor map(poplar::Graph& graph, expr::TernaryOpType op, const poplar::Tensor& a,
                          const poplar::Tensor& b, const poplar::Tensor& c, IPUJAX_POPOPS_TAIL) {
  return map(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog,
             debugContext, options);
}
inline void mapInPlace(poplar::Graph& graph, expr::UnaryOpType op, const poplar::Tensor& t,
                       IPUJAX_POPOPS_TAIL) {
  mapInPlace(graph, expr::UnaryOp(op, expr::_1), {t}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph& graph, expr::BinaryOpType op, const poplar::Tensor& a,
                       const poplar::Tensor& b, IPUJAX_POPOPS_TAIL) {
  mapInPlace(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph& graph, expr::TernaryOpType op, const poplar::Tensor& a,
                       const poplar::Tensor& b, const poplar::Tensor& c, IPUJAX_POPOPS_TAIL) {
  mapInPlace(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog,
             debugContext, options);
}

#define IPUJAX_POPOPS_UNARY(fn, OP)                                                             \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, IPUJAX_POPOPS_TAIL) { \
    return map(graph, expr::UnaryOpType::OP, A, prog, debugContext, options);                   \
  }                                                                                             \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, IPUJAX_POPOPS_TAIL) {  \
    mapInPlace(graph, expr::UnaryOpType::OP, A, prog, debugContext, options);                   \
  }
IPUJAX_POPOPS_UNARY(abs, ABSOLUTE)
IPUJAX_POPOPS_UNARY(asin, ASIN)
IPUJAX_POPOPS_UNARY(bitwiseNot, BITWISE_NOT)
IPUJAX_POPOPS_UNARY(cbrt, CBRT)
IPUJAX_POPOPS_UNARY(ceil, CEIL)
IPUJAX_POPOPS_UNARY(cos, COS)
IPUJAX_POPOPS_UNARY(countLeadingZeros, COUNT_LEADING_ZEROS)
IPUJAX_POPOPS_UNARY(erf, ERF)
IPUJAX_POPOPS_UNARY(exp, EXPONENT)
IPUJAX_POPOPS_UNARY(exp2, EXPONENT2)
IPUJAX_POPOPS_UNARY(expm1, EXPONENT_MINUS_ONE)
IPUJAX_POPOPS_UNARY(floor, FLOOR)
IPUJAX_POPOPS_UNARY(inv, INVERSE)
IPUJAX_POPOPS_UNARY(log, LOGARITHM)
IPUJAX_POPOPS_UNARY(log1p, LOGARITHM_ONE_PLUS)
IPUJAX_POPOPS_UNARY(logicalNot, LOGICAL_NOT)
IPUJAX_POPOPS_UNARY(nearbyInt, NEARBY_INT)
IPUJAX_POPOPS_UNARY(neg, NEGATE)
IPUJAX_POPOPS_UNARY(popcount, POPCOUNT)
IPUJAX_POPOPS_UNARY(relu, RELU)
IPUJAX_POPOPS_UNARY(round, ROUND)
IPUJAX_POPOPS_UNARY(rsqrt, RSQRT)
IPUJAX_POPOPS_UNARY(sigmoid, SIGMOID)
IPUJAX_POPOPS_UNARY(signum, SIGNUM)
IPUJAX_POPOPS_UNARY(sin, SIN)
IPUJAX_POPOPS_UNARY(sqrt, SQRT)
IPUJAX_POPOPS_UNARY(square, SQUARE)
IPUJAX_POPOPS_UNARY(tan, TAN)
IPUJAX_POPOPS_UNARY(tanh, TANH)
IPUJAX_POPOPS_UNARY(trunc, TRUNC)
#undef IPUJAX_POPOPS_UNARY

#define IPUJAX_POPOPS_PREDICATE(fn, OP)                                                         \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, IPUJAX_POPOPS_TAIL) { \
    return map(graph, expr::UnaryOpType::OP, A, prog, debugContext, options);                   \
  }
IPUJAX_POPOPS_PREDICATE(isFinite, IS_FINITE)
IPUJAX_POPOPS_PREDICATE(isInf, IS_INF)
IPUJAX_POPOPS_PREDICATE(isNaN, IS_NAN)
#undef IPUJAX_POPOPS_PREDICATE

#define IPUJAX_POPOPS_BINARY(fn, OP)                                                               \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B, \
                           IPUJAX_POPOPS_TAIL) {                                                   \
    return map(graph, expr::BinaryOpType::OP, A, B, prog, debugContext, options);                  \
  }                                                                                                \
  template <typename T>                                                                            \
  requires std::is_arithmetic_v<T> poplar::Tensor fn(                                              \
      poplar::Graph& graph, const poplar::Tensor& A, T B, IPUJAX_POPOPS_TAIL) {                    \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::_1, expr::Const(B)), {A}, prog, \
               debugContext, options);                                                             \
  }                                                                                                \
  template <typename T>                                                                            \
  requires std::is_arithmetic_v<T> poplar::Tensor fn(                                              \
      poplar::Graph& graph, T A, const poplar::Tensor& B, IPUJAX_POPOPS_TAIL) {                    \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::Const(A), expr::_1), {B}, prog, \
               debugContext, options);                                                             \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,  \
                          IPUJAX_POPOPS_TAIL) {                                                    \
    mapInPlace(graph, expr::BinaryOpType::OP, A, B, prog, debugContext, options);                  \
  }                                                                                                \
  template <typename T>                                                                            \
  requires std::is_arithmetic_v<T>                                                                 \
  void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, T B, IPUJAX_POPOPS_TAIL) {       \
    mapInPlace(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::_1, expr::Const(B)), {A}, prog, \
               debugContext, options);                                                             \
  }
IPUJAX_POPOPS_BINARY(add, ADD)
IPUJAX_POPOPS_BINARY(atan2, ATAN2)
IPUJAX_POPOPS_BINARY(bitwiseAnd, BITWISE_AND)
IPUJAX_POPOPS_BINARY(bitwiseOr, BITWISE_OR)
IPUJAX_POPOPS_BINARY(bitwiseXnor, BITWISE_XNOR)
IPUJAX_POPOPS_BINARY(bitwiseXor, BITWISE_XOR)
IPUJAX_POPOPS_BINARY(div, DIVIDE)
IPUJAX_POPOPS_BINARY(eq, EQUAL)
IPUJAX_POPOPS_BINARY(gt, GREATER_THAN)
IPUJAX_POPOPS_BINARY(gteq, GREATER_THAN_EQUAL)
IPUJAX_POPOPS_BINARY(invStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
IPUJAX_POPOPS_BINARY(logicalAnd, LOGICAL_AND)
IPUJAX_POPOPS_BINARY(logicalOr, LOGICAL_OR)
IPUJAX_POPOPS_BINARY(lt, LESS_THAN)
IPUJAX_POPOPS_BINARY(lteq, LESS_THAN_EQUAL)
IPUJAX_POPOPS_BINARY(max, MAXIMUM)
IPUJAX_POPOPS_BINARY(min, MINIMUM)
IPUJAX_POPOPS_BINARY(mul, MULTIPLY)
IPUJAX_POPOPS_BINARY(neq, NOT_EQUAL)
IPUJAX_POPOPS_BINARY(pow, POWER)
IPUJAX_POPOPS_BINARY(rem, REMAINDER)
IPUJAX_POPOPS_BINARY(shiftLeft, SHIFT_LEFT)
IPUJAX_POPOPS_BINARY(shiftRight, SHIFT_RIGHT)
IPUJAX_POPOPS_BINARY(shiftRightSignExtend, SHIFT_RIGHT_SIGN_EXTEND)
IPUJAX_POPOPS_BINARY(sub, SUBTRACT)
IPUJAX_POPOPS_BINARY(varianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef IPUJAX_POPOPS_BINARY

#define IPUJAX_POPOPS_TERNARY(fn, OP)                                                              \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B, \
                           const poplar::Tensor& C, IPUJAX_POPOPS_TAIL) {                          \
    return map(graph, expr::TernaryOpType::OP, A, B, C, prog, debugContext, options);              \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,  \
                          const poplar::Tensor& C, IPUJAX_POPOPS_TAIL) {                           \
    mapInPlace(graph, expr::TernaryOpType::OP, A, B, C, prog, debugContext, options);              \
  }
IPUJAX_POPOPS_TERNARY(clamp, CLAMP)
IPUJAX_POPOPS_TERNARY(select, SELECT)
#undef IPUJAX_POPOPS_TERNARY
#undef IPUJAX_POPOPS_TAIL

}  // namespace popops
