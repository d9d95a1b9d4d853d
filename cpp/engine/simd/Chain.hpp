#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/expr/ExprOp.hpp"
#include "engine/simd/MapOps.hpp"

/// Chains of cheap elementwise operations that keep their value in vector registers: an accumulator
/// of several vectors goes through all links before the next strip of elements is begun, so that a
/// value used once, by the next link, never goes to memory.
namespace ipujax::engine::simd {

/// What one link does to the accumulator, `acc`. `a` and `b` are its operands. Comparisons leave a
/// mask; in memory a mask is a kBool, one byte per element.
enum class Link : std::uint8_t {
  kLoad,  ///< acc <- a
  kLoadBool,
  kLoadHalf,
  kStore,  ///< a <- acc
  kStoreBool,
  kStoreHalf,
  kKeep,  ///< kept <- acc: a second accumulator, which links can only read
  kSwap,
  kRoundToHalf,
  kRoundToBFloat16,
  // float
  kAbs,
  kNegate,
  kSquare,
  kInverse,
  kAdd,
  kSubtract,      ///< acc - a
  kSubtractFrom,  ///< a - acc
  kMultiply,
  kDivide,
  kDivideInto,  ///< a / acc
  kMaximum,
  kMinimum,
  kMaximumOfNumber,  ///< a is neither NaN nor zero
  kMinimumOfNumber,
  kMaximumOfZero,  ///< a is +0
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  // 32-bit integers; "U": unsigned where that makes a difference
  kNegateInt,
  kSquareInt,
  kNotInt,
  kAddInt,
  kSubtractInt,
  kSubtractFromInt,
  kMultiplyInt,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,  ///< by any number of bits
  kShiftRight,
  kShiftRightSign,
  kShiftLeftFew,  ///< by 0 to 31 bits
  kShiftRightFew,
  kRotateLeft,
  kMaximumInt,
  kMinimumInt,
  kMaximumUInt,
  kMinimumUInt,
  kEqualInt,
  kNotEqualInt,
  kLessInt,
  kLessEqualInt,
  kGreaterInt,
  kGreaterEqualInt,
  kLessUInt,
  kLessEqualUInt,
  kGreaterUInt,
  kGreaterEqualUInt,
  kIntToFloat,
  kUIntToFloat,
  // masks
  kMaskToFloat,  ///< 0 or 1
  kMaskToInt,
  kNotMask,
  kAndMask,
  kOrMask,
  kXorMask,
  kSelect,       ///< acc is the mask: acc ? a : b
  kSelectTrue,   ///< b is the mask: b ? acc : a
  kSelectFalse,  ///< b is the mask: b ? a : acc
};

/// Links that do an operation of one or two operands, by the operand that is the accumulator.
struct LinkForms {
  std::optional<Link> first;   ///< acc is operand 0
  std::optional<Link> second;  ///< acc is operand 1
  std::optional<Link> both;    ///< acc is both operands
};
/// The links of an operation on operands of type `operand`; none where chains do not know it.
LinkForms linksOf(expr::Op op, ElementType operand, ElementType result);

enum class Source : std::uint8_t {
  kMemory,
  kScalar,  ///< one element in memory holds for all
  kKept,    ///< the second accumulator
};
struct ChainOperand {
  Source source = Source::kMemory;
  std::uint8_t memory = 0;  ///< number in the chain's table of memory
};
/// One link made ready.
struct ChainLink {
  Link link = Link::kLoad;
  ChainOperand a, b;
};

/// Runs all links on elements [0, n): n is a multiple of chainLanes().
void runChain(const ChainLink* links, std::size_t count, std::byte* const* memory, std::int64_t n);
std::int64_t chainLanes();  ///< elements of one vector of this CPU, at most 16

}  // namespace ipujax::engine::simd
