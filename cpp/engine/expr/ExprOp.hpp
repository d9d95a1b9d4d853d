#pragma once
#include <cstdint>

namespace ipujax::engine::expr {

/// Every elementwise operation the model knows. The numbers are part of the executable format:
/// append, never reorder. Unless said otherwise operands and result have one type.
enum class Op : std::uint8_t {
  // No operand.
  kConstant,  ///< `immediate` holds the value's bits (kHalf: the half's bits)
  // Conversions of one operand.
  kCast,             ///< value conversion; to an integer: truncates, saturates, NaN gives 0
  kBitcast,          ///< same bits, type of equal size
  kFromBFloat16,     ///< kUInt16 bits of a bfloat16 -> kFloat
  kToBFloat16,       ///< kFloat -> kUInt16, nearest even
  kRoundToBFloat16,  ///< kFloat -> kFloat with bfloat16 precision, nearest even
  kReducePrecision,  ///< immediate = exponent bits * 256 + mantissa bits
  // One operand.
  kAbs,
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kBitwiseNot,
  kCbrt,
  kCeil,
  kCos,
  kCosh,
  kCountLeadingZeros,
  kErf,
  kErfc,
  kErfInv,
  kExp,
  kExp2,
  kExpm1,
  kFloor,
  kGeluErf,
  kInverse,
  kIsFinite,  ///< -> kBool
  kIsInf,     ///< -> kBool
  kIsNan,     ///< -> kBool
  kLog,
  kLog1p,
  kLogGamma,
  kLogicalNot,
  kNearbyInt,  ///< half to even
  kNegate,
  kPopcount,
  kRelu,
  kRound,  ///< half away from zero
  kRsqrt,
  kSigmoid,
  kSignum,
  kSin,
  kSinh,
  kSqrt,
  kSquare,
  kTan,
  kTanh,
  kTrunc,
  // Two operands.
  kAdd,
  kAtan2,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXnor,
  kBitwiseXor,
  kDivide,
  kEqual,                ///< -> kBool
  kGreaterThan,          ///< -> kBool
  kGreaterThanEqual,     ///< -> kBool
  kInvStdDevToVariance,  ///< 1 / (a * a) - b
  kLessThan,             ///< -> kBool
  kLessThanEqual,        ///< -> kBool
  kLogicalAnd,
  kLogicalOr,
  kMaximum,
  kMinimum,
  kMultiply,
  kNotEqual,  ///< -> kBool
  kPower,
  kRemainder,
  kShiftLeft,
  kShiftRight,            ///< zeros come in
  kShiftRightSignExtend,  ///< the sign comes in
  kSubtract,
  kVarianceToInvStdDev,  ///< 1 / sqrt(a + b)
  // Three operands.
  kSelect,  ///< args: (if true, if false, kBool predicate)
  kClamp,   ///< args: (value, lowest, highest); NaN of any operand propagates
  // No operand again.
  kRandomBits,  ///< kUInt32; differs by element, by run, and by `immediate`
  // Two operands again.
  kRotateLeft,  ///< 32-bit integers, by 0 to 31; made by the planner, never by users
  kCount,
};

constexpr int kOpCount = static_cast<int>(Op::kCount);
const char* nameOf(Op op);
int numOperands(Op op);
bool hasImmediate(Op op);
/// Whether the result is a half without rounding when the operands are.
bool keepsHalves(Op op);

}  // namespace ipujax::engine::expr
