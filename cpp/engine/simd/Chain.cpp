#include "engine/simd/Chain.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(void runChain(const ChainLink*, std::size_t, std::byte* const*, std::int64_t))
IPUJAX_DECLARE_SIMD(std::int64_t chainLanes())

void runChain(const ChainLink* links, std::size_t count, std::byte* const* memory, std::int64_t n) {
  IPUJAX_PICK(runChain)(links, count, memory, n);
}
std::int64_t chainLanes() { return IPUJAX_PICK(chainLanes)(); }

namespace {
using expr::Op;

LinkForms unary(Link link) { return {link, {}, {}}; }
LinkForms commutative(Link link) { return {link, link, {}}; }

LinkForms floatLinks(Op op) {
  switch (op) {
    case Op::kAbs:
      return unary(Link::kAbs);
    case Op::kNegate:
      return unary(Link::kNegate);
    case Op::kSquare:
      return unary(Link::kSquare);
    case Op::kInverse:
      return unary(Link::kInverse);
    case Op::kRoundToBFloat16:
      return unary(Link::kRoundToBFloat16);
    case Op::kAdd:
      return commutative(Link::kAdd);
    case Op::kSubtract:
      return {Link::kSubtract, Link::kSubtractFrom, {}};
    case Op::kMultiply:
      return {Link::kMultiply, Link::kMultiply, Link::kSquare};
    case Op::kDivide:
      return {Link::kDivide, Link::kDivideInto, {}};
    case Op::kMaximum:
      return commutative(Link::kMaximum);
    case Op::kMinimum:
      return commutative(Link::kMinimum);
    case Op::kEqual:
      return commutative(Link::kEqual);
    case Op::kNotEqual:
      return commutative(Link::kNotEqual);
    case Op::kLessThan:
      return {Link::kLess, Link::kGreater, {}};
    case Op::kLessThanEqual:
      return {Link::kLessEqual, Link::kGreaterEqual, {}};
    case Op::kGreaterThan:
      return {Link::kGreater, Link::kLess, {}};
    case Op::kGreaterThanEqual:
      return {Link::kGreaterEqual, Link::kLessEqual, {}};
    default:
      return {};
  }
}

LinkForms integerLinks(Op op, bool is_signed) {
  const auto either = [&](Link s, Link u) { return is_signed ? s : u; };
  const auto ordered = [&](Link s, Link u, Link swapped_s, Link swapped_u) {
    return LinkForms{either(s, u), either(swapped_s, swapped_u), {}};
  };
  switch (op) {
    case Op::kNegate:
      return unary(Link::kNegateInt);
    case Op::kSquare:
      return unary(Link::kSquareInt);
    case Op::kBitwiseNot:
      return unary(Link::kNotInt);
    case Op::kAdd:
      return commutative(Link::kAddInt);
    case Op::kSubtract:
      return {Link::kSubtractInt, Link::kSubtractFromInt, {}};
    case Op::kMultiply:
      return {Link::kMultiplyInt, Link::kMultiplyInt, Link::kSquareInt};
    case Op::kBitwiseAnd:
      return commutative(Link::kAnd);
    case Op::kBitwiseOr:
      return commutative(Link::kOr);
    case Op::kBitwiseXor:
      return commutative(Link::kXor);
    case Op::kShiftLeft:
      return unary(Link::kShiftLeft);
    case Op::kShiftRight:
      return unary(Link::kShiftRight);
    case Op::kShiftRightSignExtend:
      return unary(Link::kShiftRightSign);
    case Op::kRotateLeft:
      return unary(Link::kRotateLeft);
    case Op::kMaximum:
      return commutative(either(Link::kMaximumInt, Link::kMaximumUInt));
    case Op::kMinimum:
      return commutative(either(Link::kMinimumInt, Link::kMinimumUInt));
    case Op::kEqual:
      return commutative(Link::kEqualInt);
    case Op::kNotEqual:
      return commutative(Link::kNotEqualInt);
    case Op::kLessThan:
      return ordered(Link::kLessInt, Link::kLessUInt, Link::kGreaterInt, Link::kGreaterUInt);
    case Op::kLessThanEqual:
      return ordered(Link::kLessEqualInt, Link::kLessEqualUInt, Link::kGreaterEqualInt,
                     Link::kGreaterEqualUInt);
    case Op::kGreaterThan:
      return ordered(Link::kGreaterInt, Link::kGreaterUInt, Link::kLessInt, Link::kLessUInt);
    case Op::kGreaterThanEqual:
      return ordered(Link::kGreaterEqualInt, Link::kGreaterEqualUInt, Link::kLessEqualInt,
                     Link::kLessEqualUInt);
    default:
      return {};
  }
}

LinkForms maskLinks(Op op) {
  switch (op) {
    case Op::kLogicalNot:
      return unary(Link::kNotMask);
    case Op::kLogicalAnd:
      return commutative(Link::kAndMask);
    case Op::kLogicalOr:
      return commutative(Link::kOrMask);
    case Op::kBitwiseXor:
    case Op::kNotEqual:
      return commutative(Link::kXorMask);
    default:
      return {};
  }
}
}  // namespace

LinkForms linksOf(Op op, ElementType operand, ElementType result) {
  const ElementType from = blockType(operand);
  const ElementType to = blockType(result);
  if (op == Op::kCast) {
    if (to == ElementType::kFloat && from == ElementType::kInt32) return unary(Link::kIntToFloat);
    if (to == ElementType::kFloat && from == ElementType::kUInt32) return unary(Link::kUIntToFloat);
    if (to == ElementType::kFloat && from == ElementType::kBool) return unary(Link::kMaskToFloat);
    if (to == ElementType::kInt32 && from == ElementType::kBool) return unary(Link::kMaskToInt);
    return {};
  }
  switch (from) {
    case ElementType::kFloat:
      return floatLinks(op);
    case ElementType::kInt32:
    case ElementType::kUInt32:
      return integerLinks(op, from == ElementType::kInt32);
    case ElementType::kBool:
      return maskLinks(op);
    default:
      return {};
  }
}

}  // namespace ipujax::engine::simd
