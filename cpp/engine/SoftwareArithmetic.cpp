#include "engine/SoftwareArithmetic.hpp"

/// Our own estimates: nobody has published such code for an IPU. They count the instructions of
/// portable software floating point (Berkeley SoftFloat's double add, multiply, divide, square
/// root) on a 32-bit worker, one instruction a worker cycle; libm functions as so many double
/// additions and products.
namespace ipujax::engine {
namespace {

using expr::Op;

constexpr double kDoubleAdd = 60, kDoubleMultiply = 80, kDoubleDivide = 350, kDoubleRoot = 450;
constexpr double kDoubleCompare = 14, kDoubleBits = 5, kDoubleRound = 30;
constexpr double kDoubleFunction = 12 * (kDoubleAdd + kDoubleMultiply) + kDoubleDivide;
constexpr double kWordsPair = 8, kWordsShift = 16, kWordsMultiply = 24, kWordsDivide = 600;

double doubleCycles(Op op) {
  switch (op) {
    case Op::kConstant:
    case Op::kBitcast:
      return 0;
    case Op::kAbs:
    case Op::kNegate:
    case Op::kIsFinite:
    case Op::kIsInf:
    case Op::kIsNan:
    case Op::kSelect:
    case Op::kSignum:
      return kDoubleBits;
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLessThan:
    case Op::kLessThanEqual:
    case Op::kGreaterThan:
    case Op::kGreaterThanEqual:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kRelu:
      return kDoubleCompare;
    case Op::kClamp:
      return 2 * kDoubleCompare;
    case Op::kCast:
    case Op::kCeil:
    case Op::kFloor:
    case Op::kRound:
    case Op::kNearbyInt:
    case Op::kTrunc:
    case Op::kReducePrecision:
      return kDoubleRound;
    case Op::kAdd:
    case Op::kSubtract:
      return kDoubleAdd;
    case Op::kMultiply:
    case Op::kSquare:
      return kDoubleMultiply;
    case Op::kDivide:
    case Op::kInverse:
      return kDoubleDivide;
    case Op::kSqrt:
      return kDoubleRoot;
    case Op::kRsqrt:
      return kDoubleRoot + kDoubleDivide;
    case Op::kRemainder:
      return 2 * kDoubleDivide;
    case Op::kPower:
    case Op::kAtan2:
    case Op::kLogGamma:
      return 2 * kDoubleFunction;
    default:
      return kDoubleFunction;
  }
}

double wordsCycles(Op op) {
  switch (op) {
    case Op::kConstant:
    case Op::kBitcast:
      return 0;
    case Op::kMultiply:
    case Op::kSquare:
      return kWordsMultiply;
    case Op::kDivide:
    case Op::kRemainder:
      return kWordsDivide;
    case Op::kPower:
      return 64 * kWordsMultiply;
    case Op::kShiftLeft:
    case Op::kShiftRight:
    case Op::kShiftRightSignExtend:
    case Op::kPopcount:
    case Op::kCountLeadingZeros:
      return kWordsShift;
    default:
      return kWordsPair;
  }
}
}  // namespace

double softwareCycles(Op op, ElementType type) {
  return type == ElementType::kDouble ? doubleCycles(op) : wordsCycles(op);
}

double softwareAddCycles(ElementType type) { return softwareCycles(Op::kAdd, type); }

double softwareMultiplyAddCycles(ElementType type) {
  return softwareCycles(Op::kMultiply, type) + softwareCycles(Op::kAdd, type);
}

}  // namespace ipujax::engine
