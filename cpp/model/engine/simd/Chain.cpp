#include "engine/simd/Chain.hpp"

#include <span>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(void runChain(const ChainLink*, ChainMemory&, std::span<const std::uint8_t>,
                                  std::int64_t))
IPUJAX_DECLARE_SIMD(std::int64_t chainLanes())

void runChain(const ChainLink* links, ChainMemory& memory, std::span<const std::uint8_t> steps,
              std::int64_t n) {
  IPUJAX_PICK(runChain)(links, memory, steps, n);
}
std::int64_t chainLanes() { return IPUJAX_PICK(chainLanes)(); }

namespace {
using expr::Op;

/// The link's place among those that can be joined.
std::optional<std::size_t> joinedPlace(const ChainLink& link) {
  for (std::size_t place = 0; place < kNumJoined; ++place) {
    const Link kind = kJoined[place / kJoinedSources.size()];
    const Source source = kJoinedSources[place % kJoinedSources.size()];
    if ((link.code & ~3u) == ChainLink::codeOf(kind, source)) return place;
  }
  return {};
}

constexpr LinkForms unary(Link link) { return {link, {}, {}}; }
constexpr LinkForms commutative(Link link) { return {link, link, {}}; }

struct LinkRow {
  Op op;
  LinkForms forms;
};

constexpr LinkRow kFloatLinks[] = {
    {Op::kAbs, unary(Link::kAbs)},
    {Op::kNegate, unary(Link::kNegate)},
    {Op::kSquare, unary(Link::kSquare)},
    {Op::kInverse, unary(Link::kInverse)},
    {Op::kSqrt, unary(Link::kSquareRoot)},
    {Op::kRsqrt, unary(Link::kInverseSquareRoot)},
    {Op::kRelu, unary(Link::kRelu)},
    {Op::kIsNan, unary(Link::kIsNan)},
    {Op::kExpm1, unary(Link::kExpm1)},
    {Op::kTanh, unary(Link::kTanh)},
    {Op::kRoundToBFloat16, unary(Link::kRoundToBFloat16)},
    {Op::kAdd, commutative(Link::kAdd)},
    {Op::kSubtract, {Link::kSubtract, Link::kSubtractFrom, {}}},
    {Op::kMultiply, {Link::kMultiply, Link::kMultiply, Link::kSquare}},
    {Op::kDivide, {Link::kDivide, Link::kDivideInto, {}}},
    {Op::kMaximum, commutative(Link::kMaximum)},
    {Op::kMinimum, commutative(Link::kMinimum)},
    {Op::kEqual, commutative(Link::kEqual)},
    {Op::kNotEqual, {Link::kNotEqual, Link::kNotEqual, Link::kIsNan}},
    {Op::kLessThan, {Link::kLess, Link::kGreater, {}}},
    {Op::kLessThanEqual, {Link::kLessEqual, Link::kGreaterEqual, {}}},
    {Op::kGreaterThan, {Link::kGreater, Link::kLess, {}}},
    {Op::kGreaterThanEqual, {Link::kGreaterEqual, Link::kLessEqual, {}}}};

/// Links for which signedness makes no difference.
constexpr LinkRow kIntegerLinks[] = {
    {Op::kNegate, unary(Link::kNegateInt)},
    {Op::kSquare, unary(Link::kSquareInt)},
    {Op::kBitwiseNot, unary(Link::kNotInt)},
    {Op::kAdd, commutative(Link::kAddInt)},
    {Op::kSubtract, {Link::kSubtractInt, Link::kSubtractFromInt, {}}},
    {Op::kMultiply, {Link::kMultiplyInt, Link::kMultiplyInt, Link::kSquareInt}},
    {Op::kBitwiseAnd, commutative(Link::kAnd)},
    {Op::kBitwiseOr, commutative(Link::kOr)},
    {Op::kBitwiseXor, commutative(Link::kXor)},
    {Op::kShiftLeft, unary(Link::kShiftLeft)},
    {Op::kShiftRight, unary(Link::kShiftRight)},
    {Op::kShiftRightSignExtend, unary(Link::kShiftRightSign)},
    {Op::kRotateLeft, unary(Link::kRotateLeft)},
    {Op::kEqual, commutative(Link::kEqualInt)},
    {Op::kNotEqual, commutative(Link::kNotEqualInt)}};

constexpr LinkRow kSignedLinks[] = {
    {Op::kMaximum, commutative(Link::kMaximumInt)},
    {Op::kMinimum, commutative(Link::kMinimumInt)},
    {Op::kLessThan, {Link::kLessInt, Link::kGreaterInt, {}}},
    {Op::kLessThanEqual, {Link::kLessEqualInt, Link::kGreaterEqualInt, {}}},
    {Op::kGreaterThan, {Link::kGreaterInt, Link::kLessInt, {}}},
    {Op::kGreaterThanEqual, {Link::kGreaterEqualInt, Link::kLessEqualInt, {}}}};

constexpr LinkRow kUnsignedLinks[] = {
    {Op::kMaximum, commutative(Link::kMaximumUInt)},
    {Op::kMinimum, commutative(Link::kMinimumUInt)},
    {Op::kLessThan, {Link::kLessUInt, Link::kGreaterUInt, {}}},
    {Op::kLessThanEqual, {Link::kLessEqualUInt, Link::kGreaterEqualUInt, {}}},
    {Op::kGreaterThan, {Link::kGreaterUInt, Link::kLessUInt, {}}},
    {Op::kGreaterThanEqual, {Link::kGreaterEqualUInt, Link::kLessEqualUInt, {}}}};

constexpr LinkRow kMaskLinks[] = {{Op::kLogicalNot, unary(Link::kNotMask)},
                                  {Op::kLogicalAnd, commutative(Link::kAndMask)},
                                  {Op::kLogicalOr, commutative(Link::kOrMask)},
                                  {Op::kBitwiseXor, commutative(Link::kXorMask)},
                                  {Op::kNotEqual, commutative(Link::kXorMask)}};

LinkForms find(Op op, std::span<const LinkRow> rows, std::span<const LinkRow> others = {}) {
  for (const auto table : {rows, others})
    for (const LinkRow& row : table)
      if (row.op == op) return row.forms;
  return {};
}
}  // namespace

bool ChainLink::join(const ChainLink& next) {
  const auto first = joinedPlace(*this), second = joinedPlace(next);
  if (!first || !second || stores() || next.loads()) return false;
  code = static_cast<std::uint16_t>(joinedCode(*first, *second) | (code & 2u) | (next.code & 1u));
  b = next.a;
  to = next.to;
  return true;
}

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
      return find(op, kFloatLinks);
    case ElementType::kInt32:
      return find(op, kIntegerLinks, kSignedLinks);
    case ElementType::kUInt32:
      return find(op, kIntegerLinks, kUnsignedLinks);
    case ElementType::kBool:
      return find(op, kMaskLinks);
    default:
      return {};
  }
}

}  // namespace ipujax::engine::simd
