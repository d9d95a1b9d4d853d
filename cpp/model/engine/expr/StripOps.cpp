#include "engine/expr/StripOps.hpp"

#include <bit>
#include <limits>

#include "engine/expr/StripRecording.hpp"
#include "engine/ops/FloatFormulas.hpp"
#include "engine/simd/MapOps.hpp"

namespace ipujax::engine::expr {
namespace {

using code::Rounding;
using code::StripBuilder;
using code::StripOp;
using Value = StripBuilder::Value;
using Result = std::optional<Value>;

constexpr std::uint32_t kSign = 0x80000000u, kExponent = 0x7f800000u, kAll = 0xffffffffu;

using Functions = FloatFormulas<recorded::Math>;

/// The operations of one type; lives for one operation.
class Formulas {
 public:
  Formulas(StripBuilder& builder, const StripOperands& operands) : b_(builder), in_(operands) {
    recorded::builder = &builder;
  }

  Result ofFloats(Op op);
  Result function(Op op) const;
  Result ofFloatPairs(Op op);
  Result ofIntegers(Op op, bool is_signed);
  Result ofIntegerPairs(Op op, bool is_signed);
  Result divided(Op op, bool is_signed);
  Value onesOf(Value x);
  Value leadingZeros();
  Value quotientBy(std::uint32_t d);
  Value quotientBy(std::int32_t d);
  Result ofMasks(Op op);
  Result cast(ElementType from, ElementType to);
  Result clamp(ElementType type);
  Value selected() { return b_.add(StripOp::kSelect, in_[2].value, first(), second()); }

 private:
  Value first() const { return in_[0].value; }
  Value second() const { return in_[1].value; }
  Value two(StripOp op, Value x, Value y) { return b_.add(op, x, y); }
  Value both(StripOp op) { return two(op, first(), second()); }
  Value bitsOf(std::uint32_t bits) { return b_.bits(bits); }
  Value number(float x) { return b_.number(x); }
  Value opposite(Value mask) { return two(StripOp::kXor, mask, bitsOf(kAll)); }
  Value root(Value x) { return b_.add(StripOp::kSquareRoot, x); }
  Value whole(Value x, Rounding how) {
    return b_.add(StripOp::kRoundWhole, x, -1, -1, static_cast<std::uint32_t>(how));
  }
  Value select(Value mask, Value if_true, Value if_false) {
    return b_.add(StripOp::kSelect, mask, if_true, if_false);
  }
  Value extreme(bool is_maximum, Value x, const StripOperand& other);
  Value exponentIs(Value bits, std::uint32_t mask) {
    return two(StripOp::kEqualInt, two(StripOp::kAnd, bits, bitsOf(mask)), bitsOf(kExponent));
  }
  Value roundToBFloat16();
  Value rounded();
  Value toInteger();
  Value toFloat(bool is_signed);

  StripBuilder& b_;
  const StripOperands& in_;
};

/// NaNs propagate, and +0 is larger than -0. One instruction does if a constant is neither.
Value Formulas::extreme(bool is_maximum, Value x, const StripOperand& other) {
  const StripOp op = is_maximum ? StripOp::kLargerOrSecond : StripOp::kSmallerOrSecond;
  const Value y = other.value;
  if (other.constant) {
    const float bound = __builtin_bit_cast(float, *other.constant);
    if (bound == bound && bound != 0.0f) return two(op, y, x);
    if (is_maximum && *other.constant == 0)  // adding +0 makes +0 of -0
      return two(StripOp::kAdd, two(op, y, x), number(0.0f));
  }
  const Value ordered = two(op, x, y);
  const Value zeros = two(is_maximum ? StripOp::kAnd : StripOp::kOr, ordered, x);
  const Value found = select(two(StripOp::kEqual, x, y), zeros, ordered);
  return select(two(StripOp::kUnordered, x, x), x, found);
}

Value Formulas::roundToBFloat16() {
  const Value last = two(StripOp::kAnd, two(StripOp::kShiftRight, first(), bitsOf(16)), bitsOf(1));
  const Value up = two(StripOp::kAddInt, two(StripOp::kAddInt, first(), bitsOf(0x7fff)), last);
  const Value nan =
      two(StripOp::kOr, two(StripOp::kAnd, first(), bitsOf(0xffff0000u)), bitsOf(0x00400000u));
  return select(two(StripOp::kUnordered, first(), first()), nan,
                two(StripOp::kAnd, up, bitsOf(0xffff0000u)));
}

/// Half away from zero.
Value Formulas::rounded() {
  const Value sign = two(StripOp::kAnd, first(), bitsOf(kSign));
  const Value half = two(StripOp::kOr, number(0.49999997f), sign);
  return whole(two(StripOp::kAdd, first(), half), Rounding::kToZero);
}

Result Formulas::ofFloats(Op op) {
  switch (op) {
    case Op::kAbs:
      return two(StripOp::kAnd, first(), bitsOf(~kSign));
    case Op::kNegate:
      return two(StripOp::kXor, first(), bitsOf(kSign));
    case Op::kSquare:
      return two(StripOp::kMultiply, first(), first());
    case Op::kInverse:
      return two(StripOp::kDivide, number(1.0f), first());
    case Op::kSqrt:
      return root(first());
    case Op::kRsqrt:
      return two(StripOp::kDivide, number(1.0f), root(first()));
    case Op::kRelu:
      return two(StripOp::kLargerOrSecond, bitsOf(0), first());
    case Op::kIsNan:
      return two(StripOp::kUnordered, first(), first());
    case Op::kIsInf:
      return exponentIs(first(), ~kSign);
    case Op::kIsFinite:
      return opposite(exponentIs(first(), kExponent));
    case Op::kSignum:
      return select(two(StripOp::kLess, bitsOf(0), first()), number(1.0f),
                    select(two(StripOp::kLess, first(), bitsOf(0)), number(-1.0f), first()));
    case Op::kFloor:
      return whole(first(), Rounding::kDown);
    case Op::kCeil:
      return whole(first(), Rounding::kUp);
    case Op::kTrunc:
      return whole(first(), Rounding::kToZero);
    case Op::kNearbyInt:
      return whole(first(), Rounding::kNearestEven);
    case Op::kRound:
      return rounded();
    case Op::kRoundToBFloat16:
      return roundToBFloat16();
    case Op::kToBFloat16:  // a NaN that is one keeps its bits
      return select(two(StripOp::kEqualInt, two(StripOp::kAnd, first(), bitsOf(0xffff)), bitsOf(0)),
                    first(), roundToBFloat16());
    default:
      return function(op);
  }
}

Result Formulas::function(Op op) const {
  const recorded::Number x(first());
  switch (op) {
    case Op::kExp:
      return Functions::exp(x).value;
    case Op::kExpm1:
      return Functions::expm1(x).value;
    case Op::kLog:
      return Functions::log(x).value;
    case Op::kLog1p:
      return Functions::log1p(x).value;
    case Op::kTanh:
      return Functions::tanh(x).value;
    case Op::kSigmoid:
      return Functions::sigmoid(x).value;
    case Op::kErf:
      return Functions::erf(x).value;
    case Op::kGelu:
      return Functions::gelu(x).value;
    case Op::kGeluErf:
      return Functions::geluErf(x).value;
    default:
      return {};
  }
}

Result Formulas::ofFloatPairs(Op op) {
  switch (op) {
    case Op::kAdd:
      return both(StripOp::kAdd);
    case Op::kSubtract:
      return both(StripOp::kSubtract);
    case Op::kMultiply:
      return both(StripOp::kMultiply);
    case Op::kDivide:
      return both(StripOp::kDivide);
    case Op::kMaximum:
    case Op::kMinimum:
      return in_[0].constant ? extreme(op == Op::kMaximum, second(), in_[0])
                             : extreme(op == Op::kMaximum, first(), in_[1]);
    case Op::kEqual:
      return both(StripOp::kEqual);
    case Op::kNotEqual:
      return opposite(both(StripOp::kEqual));
    case Op::kLessThan:
      return both(StripOp::kLess);
    case Op::kLessThanEqual:
      return both(StripOp::kLessEqual);
    case Op::kGreaterThan:
      return two(StripOp::kLess, second(), first());
    case Op::kGreaterThanEqual:
      return two(StripOp::kLessEqual, second(), first());
    case Op::kGeluGradient:
      return Functions::geluGradient(recorded::Number(first()), recorded::Number(second())).value;
    case Op::kGeluErfGradient:
      return Functions::geluErfGradient(recorded::Number(first()), recorded::Number(second()))
          .value;
    case Op::kVarianceToInvStdDev:
      return two(StripOp::kDivide, number(1.0f), root(both(StripOp::kAdd)));
    case Op::kInvStdDevToVariance:
      return two(StripOp::kSubtract,
                 two(StripOp::kDivide, number(1.0f), two(StripOp::kMultiply, first(), first())),
                 second());
    default:
      return {};
  }
}

Result Formulas::ofIntegers(Op op, bool is_signed) {
  const Value zero = bitsOf(0);
  switch (op) {
    case Op::kAbs:
      if (!is_signed) return first();
      return two(StripOp::kLargerInt, first(), two(StripOp::kSubtractInt, zero, first()));
    case Op::kNegate:
      return two(StripOp::kSubtractInt, zero, first());
    case Op::kSquare:
      return two(StripOp::kMultiplyInt, first(), first());
    case Op::kBitwiseNot:
      return opposite(first());
    case Op::kRelu:
      if (!is_signed) return first();
      return two(StripOp::kLargerInt, first(), zero);
    case Op::kPopcount:
      return onesOf(first());
    case Op::kCountLeadingZeros:
      return leadingZeros();
    case Op::kSignum:
      if (!is_signed) return two(StripOp::kSmallerUInt, first(), bitsOf(1));
      return two(StripOp::kSubtractInt, two(StripOp::kLessInt, first(), zero),
                 two(StripOp::kLessInt, zero, first()));
    default:
      return {};
  }
}

Result Formulas::ofIntegerPairs(Op op, bool is_signed) {
  const StripOp less = is_signed ? StripOp::kLessInt : StripOp::kLessUInt;
  switch (op) {
    case Op::kAdd:
      return both(StripOp::kAddInt);
    case Op::kSubtract:
      return both(StripOp::kSubtractInt);
    case Op::kMultiply:
      return both(StripOp::kMultiplyInt);
    case Op::kBitwiseAnd:
      return both(StripOp::kAnd);
    case Op::kBitwiseOr:
      return both(StripOp::kOr);
    case Op::kBitwiseXor:
      return both(StripOp::kXor);
    case Op::kBitwiseXnor:
      return opposite(both(StripOp::kXor));
    case Op::kShiftLeft:
      return both(StripOp::kShiftLeft);
    case Op::kShiftRight:
      return both(StripOp::kShiftRight);
    case Op::kShiftRightSignExtend:
      return both(StripOp::kShiftRightSign);
    case Op::kRotateLeft:
      return both(StripOp::kRotateLeft);
    case Op::kMaximum:
      return both(is_signed ? StripOp::kLargerInt : StripOp::kLargerUInt);
    case Op::kMinimum:
      return both(is_signed ? StripOp::kSmallerInt : StripOp::kSmallerUInt);
    case Op::kEqual:
      return both(StripOp::kEqualInt);
    case Op::kNotEqual:
      return opposite(both(StripOp::kEqualInt));
    case Op::kLessThan:
      return both(less);
    case Op::kLessThanEqual:
      return opposite(two(less, second(), first()));
    case Op::kGreaterThan:
      return two(less, second(), first());
    case Op::kGreaterThanEqual:
      return opposite(both(less));
    case Op::kDivide:
    case Op::kRemainder:
      return divided(op, is_signed);
    default:
      return {};
  }
}

/// Sums up ever larger groups of bits (Knuth, The Art of Computer Programming 4A, 7.1.3).
Value Formulas::onesOf(Value x) {
  const auto masked = [&](Value v, std::uint32_t mask) {
    return two(StripOp::kAnd, v, bitsOf(mask));
  };
  const auto shifted = [&](Value v, std::uint32_t n) {
    return two(StripOp::kShiftRight, v, bitsOf(n));
  };
  x = two(StripOp::kSubtractInt, x, masked(shifted(x, 1), 0x55555555u));
  x = two(StripOp::kAddInt, masked(x, 0x33333333u), masked(shifted(x, 2), 0x33333333u));
  x = masked(two(StripOp::kAddInt, x, shifted(x, 4)), 0x0f0f0f0fu);
  return shifted(two(StripOp::kMultiplyInt, x, bitsOf(0x01010101u)), 24);
}

/// From the ones after all bits below the first one are set.
Value Formulas::leadingZeros() {
  Value x = first();
  for (std::uint32_t width = 1; width < 32; width *= 2)
    x = two(StripOp::kOr, x, two(StripOp::kShiftRight, x, bitsOf(width)));
  return two(StripOp::kSubtractInt, bitsOf(32), onesOf(x));
}

/// Whole parts of quotients by a constant, as products with its inverse (Warren, Hacker's Delight,
/// chapter 10). x / 0 = -1 and x % 0 = x, as elsewhere.
Result Formulas::divided(Op op, bool is_signed) {
  if (!in_[1].constant) return {};
  const std::uint32_t d = *in_[1].constant;
  const Value q = is_signed ? quotientBy(static_cast<std::int32_t>(d)) : quotientBy(d);
  if (op == Op::kDivide) return q;
  return two(StripOp::kSubtractInt, first(), two(StripOp::kMultiplyInt, q, bitsOf(d)));
}

Value Formulas::quotientBy(std::uint32_t d) {
  if (d == 0) return bitsOf(kAll);
  if (std::has_single_bit(d))
    return two(StripOp::kShiftRight, first(),
               bitsOf(static_cast<std::uint32_t>(std::countr_zero(d))));
  // The least 2^p / d, rounded up, that is close enough; it has 33 bits.
  const int log = 32 - std::countl_zero(d);
  const auto inverse = static_cast<std::uint32_t>(
      ((std::uint64_t{1} << 32) * ((std::uint64_t{1} << log) - d)) / d + 1);
  const Value high = two(StripOp::kHighProductUInt, first(), bitsOf(inverse));
  const Value half =
      two(StripOp::kShiftRight, two(StripOp::kSubtractInt, first(), high), bitsOf(1));
  return two(StripOp::kShiftRight, two(StripOp::kAddInt, half, high),
             bitsOf(static_cast<std::uint32_t>(log - 1)));
}

Value Formulas::quotientBy(std::int32_t d) {
  if (d == 0) return bitsOf(kAll);
  if (d == 1) return first();
  if (d == -1) return two(StripOp::kSubtractInt, bitsOf(0), first());
  if (d == std::numeric_limits<std::int32_t>::min())
    return two(StripOp::kAnd, two(StripOp::kEqualInt, first(), bitsOf(kSign)), bitsOf(1));
  const std::uint64_t size = d < 0 ? 0u - static_cast<std::uint32_t>(d) : d;
  // The least p for which 2^p / size, rounded up, is close enough for all 32-bit numbers.
  int p = 32;
  const auto isClose = [&] {
    const std::uint64_t power = std::uint64_t{1} << p;
    return size - power % size <= power >> 31;
  };
  while (!isClose()) ++p;
  const auto inverse = static_cast<std::uint32_t>((std::uint64_t{1} << p) / size + 1);
  Value q = two(StripOp::kHighProductInt, first(), bitsOf(inverse));
  if (inverse >= kSign) q = two(StripOp::kAddInt, q, first());  // it stands for inverse - 2^32
  q = two(StripOp::kShiftRightSign, q, bitsOf(static_cast<std::uint32_t>(p - 32)));
  q = two(StripOp::kAddInt, q, two(StripOp::kShiftRight, first(), bitsOf(31)));
  return d < 0 ? two(StripOp::kSubtractInt, bitsOf(0), q) : q;
}

Result Formulas::ofMasks(Op op) {
  switch (op) {
    case Op::kLogicalNot:
      return opposite(first());
    case Op::kLogicalAnd:
      return both(StripOp::kAnd);
    case Op::kLogicalOr:
      return both(StripOp::kOr);
    case Op::kBitwiseXor:
    case Op::kNotEqual:
      return both(StripOp::kXor);
    case Op::kBitwiseXnor:
    case Op::kEqual:
      return opposite(both(StripOp::kXor));
    default:
      return {};
  }
}

/// The instruction gives the lowest integer for all that is out of range.
Value Formulas::toInteger() {
  const Value cut = b_.add(StripOp::kTruncateToInt, first());
  const Value is_large = two(StripOp::kLessEqual, number(0x1p31f), first());
  const Value is_number = opposite(two(StripOp::kUnordered, first(), first()));
  return two(StripOp::kAnd, two(StripOp::kXor, cut, is_large), is_number);
}

/// An unsigned integer by halves of 16 bits: their sum is rounded once.
Value Formulas::toFloat(bool is_signed) {
  if (is_signed) return b_.add(StripOp::kIntToFloat, first());
  const Value high = b_.add(StripOp::kIntToFloat, two(StripOp::kShiftRight, first(), bitsOf(16)));
  const Value low = b_.add(StripOp::kIntToFloat, two(StripOp::kAnd, first(), bitsOf(0xffff)));
  return b_.add(StripOp::kMultiplyAdd, high, number(0x1p16f), low);
}

Result Formulas::cast(ElementType from, ElementType to) {
  const bool is_integer = to == ElementType::kInt32 || to == ElementType::kUInt32;
  switch (from) {
    case ElementType::kFloat:
      if (to == ElementType::kInt32) return toInteger();
      if (to == ElementType::kBool) return opposite(two(StripOp::kEqual, first(), bitsOf(0)));
      return {};
    case ElementType::kInt32:
    case ElementType::kUInt32:
      if (to == ElementType::kFloat) return toFloat(from == ElementType::kInt32);
      if (to == ElementType::kBool) return opposite(two(StripOp::kEqualInt, first(), bitsOf(0)));
      if (is_integer) return first();
      return {};
    case ElementType::kBool:
      if (to == ElementType::kFloat) return two(StripOp::kAnd, first(), number(1.0f));
      if (is_integer) return two(StripOp::kAnd, first(), bitsOf(1));
      return {};
    default:
      return {};
  }
}

/// Operands: the value, the lowest and the highest.
Result Formulas::clamp(ElementType type) {
  if (type == ElementType::kFloat) return extreme(false, extreme(true, first(), in_[1]), in_[2]);
  const bool is_signed = type == ElementType::kInt32;
  const Value above = both(is_signed ? StripOp::kLargerInt : StripOp::kLargerUInt);
  return two(is_signed ? StripOp::kSmallerInt : StripOp::kSmallerUInt, above, in_[2].value);
}

}  // namespace

Result addOperation(StripBuilder& builder, Op op, ElementType operand, ElementType result,
                    const StripOperands& operands) {
  if (op == Op::kFromBFloat16) return operands[0].value;  // held as the float that it is
  const ElementType type = simd::blockType(operand);
  const bool is_integer = type == ElementType::kInt32 || type == ElementType::kUInt32;
  if (!is_integer && type != ElementType::kFloat && type != ElementType::kBool) return {};
  Formulas formulas(builder, operands);
  if (op == Op::kCast) return formulas.cast(type, simd::blockType(result));
  if (op == Op::kSelect) return formulas.selected();
  if (type == ElementType::kBool) return formulas.ofMasks(op);
  if (op == Op::kClamp) return formulas.clamp(type);
  const bool is_pair = numOperands(op) == 2;
  if (is_integer) {
    const bool is_signed = type == ElementType::kInt32;
    return is_pair ? formulas.ofIntegerPairs(op, is_signed) : formulas.ofIntegers(op, is_signed);
  }
  return is_pair ? formulas.ofFloatPairs(op) : formulas.ofFloats(op);
}

bool hasStrip(Op op, ElementType operand, ElementType result,
              std::optional<std::uint32_t> divisor) {
  StripBuilder builder;
  const StripOperands any{StripOperand{0, {}}, StripOperand{0, divisor}, StripOperand{0, {}}};
  return addOperation(builder, op, operand, result, any).has_value();
}

}  // namespace ipujax::engine::expr
