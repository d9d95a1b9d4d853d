#include "engine/expr/ExprOp.hpp"

#include <array>

namespace ipujax::engine::expr {

namespace {
constexpr std::array<const char*, kOpCount> kNames{"constant",
                                                   "cast",
                                                   "bitcast",
                                                   "from_bfloat16",
                                                   "to_bfloat16",
                                                   "round_to_bfloat16",
                                                   "reduce_precision",
                                                   "abs",
                                                   "acos",
                                                   "acosh",
                                                   "asin",
                                                   "asinh",
                                                   "atan",
                                                   "atanh",
                                                   "bitwise_not",
                                                   "cbrt",
                                                   "ceil",
                                                   "cos",
                                                   "cosh",
                                                   "count_leading_zeros",
                                                   "erf",
                                                   "erfc",
                                                   "erf_inv",
                                                   "exp",
                                                   "exp2",
                                                   "expm1",
                                                   "floor",
                                                   "gelu_erf",
                                                   "inverse",
                                                   "is_finite",
                                                   "is_inf",
                                                   "is_nan",
                                                   "log",
                                                   "log1p",
                                                   "log_gamma",
                                                   "logical_not",
                                                   "nearby_int",
                                                   "negate",
                                                   "popcount",
                                                   "relu",
                                                   "round",
                                                   "rsqrt",
                                                   "sigmoid",
                                                   "signum",
                                                   "sin",
                                                   "sinh",
                                                   "sqrt",
                                                   "square",
                                                   "tan",
                                                   "tanh",
                                                   "trunc",
                                                   "add",
                                                   "atan2",
                                                   "bitwise_and",
                                                   "bitwise_or",
                                                   "bitwise_xnor",
                                                   "bitwise_xor",
                                                   "divide",
                                                   "equal",
                                                   "greater_than",
                                                   "greater_than_equal",
                                                   "inv_std_dev_to_variance",
                                                   "less_than",
                                                   "less_than_equal",
                                                   "logical_and",
                                                   "logical_or",
                                                   "maximum",
                                                   "minimum",
                                                   "multiply",
                                                   "not_equal",
                                                   "power",
                                                   "remainder",
                                                   "shift_left",
                                                   "shift_right",
                                                   "shift_right_sign_extend",
                                                   "subtract",
                                                   "variance_to_inv_std_dev",
                                                   "select",
                                                   "clamp",
                                                   "random_bits",
                                                   "rotate_left"};
}  // namespace

const char* nameOf(Op op) {
  const auto index = static_cast<std::size_t>(op);
  return index < kNames.size() ? kNames[index] : "unknown";
}

int numOperands(Op op) {
  if (op == Op::kConstant || op == Op::kRandomBits) return 0;
  if (op == Op::kRotateLeft) return 2;
  if (op < Op::kAdd) return 1;
  if (op < Op::kSelect) return 2;
  return 3;
}

bool keepsHalves(Op op) {
  switch (op) {
    case Op::kConstant:
    case Op::kBitcast:
    case Op::kAbs:
    case Op::kCeil:
    case Op::kFloor:
    case Op::kTrunc:
    case Op::kRound:
    case Op::kNearbyInt:
    case Op::kNegate:
    case Op::kRelu:
    case Op::kSignum:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kSelect:
    case Op::kClamp:
    case Op::kReducePrecision:
      return true;
    default:
      return false;
  }
}

bool hasImmediate(Op op) {
  return op == Op::kConstant || op == Op::kReducePrecision || op == Op::kRandomBits;
}

}  // namespace ipujax::engine::expr
