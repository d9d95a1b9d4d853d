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
  kKeep,  ///< a <- acc, where a is a kept strip
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
  kEnd,          ///< the last link of every chain
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
  kKept,    ///< a strip that a link of this chain has kept, in the form of the accumulator
};
constexpr std::size_t kMostKept = 8;

struct ChainOperand {
  Source source = Source::kMemory;
  std::uint8_t number = 0;  ///< in the chain's table of memory, or of the kept strip
};
/// One link made ready.
struct ChainLink {
  explicit ChainLink(Link link, ChainOperand first = {}, ChainOperand second = {})
      : code(codeOf(link, first.source)),
        a(first.number),
        b(second.number),
        b_source(second.source) {}
  static constexpr std::uint16_t codeOf(Link link, Source a) {
    return static_cast<std::uint16_t>(static_cast<int>(link) * 3 + static_cast<int>(a));
  }
  std::uint16_t code;
  std::uint8_t a, b;
  Source b_source;
};

/// Runs all links, up to kEnd, on elements [0, n): n is a multiple of chainLanes().
void runChain(const ChainLink* links, std::byte* const* memory, std::int64_t n);
std::int64_t chainLanes();  ///< elements of one vector of this CPU, at most 16

}  // namespace ipujax::engine::simd
