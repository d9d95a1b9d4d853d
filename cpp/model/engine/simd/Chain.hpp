#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/ops/ExprOp.hpp"
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
  kRoundToHalf,
  kRoundToBFloat16,
  // float
  kAbs,
  kNegate,
  kSquare,
  kInverse,
  kSquareRoot,
  kInverseSquareRoot,
  kRelu,
  kIsNan,  ///< a mask
  kExpm1,  ///< exp, log and sigmoid have none: their loops over a block are faster
  kTanh,
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
  kEnd,  ///< the last link of every chain
  // with a second operand
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
/// The links of an operation on operands of type `operand`; none if chains do not support it.
LinkForms linksOf(expr::Op op, ElementType operand, ElementType result);

enum class Source : std::uint8_t {
  kMemory,
  kScalar,    ///< one element in memory, used for all
  kKeptMask,  ///< a mask kept as it is in the accumulator
};
constexpr int kNumSources = 3;
constexpr std::size_t kMostKept = 8;
/// Elements that fit in all kept strips together, and in each of num_kept strips.
constexpr std::size_t kKeptElements = 4096;
constexpr std::int64_t stretchOf(std::size_t num_kept) {
  return static_cast<std::int64_t>(kKeptElements / std::bit_ceil(num_kept));
}

struct ChainOperand {
  Source source = Source::kMemory;
  std::uint8_t number = 0;  ///< in the chain's table of memory
};
/// One link, ready to run. An operation can also load the accumulator before and store it
/// afterwards, so most loads and stores need no separate link.
struct ChainLink {
  explicit ChainLink(Link link, ChainOperand first = {}, ChainOperand second = {})
      : link(link),
        code(codeOf(link, first.source, second.source)),
        a(first.number),
        b(second.number) {}
  /// Code of a link that neither loads nor stores; the next ones: 1 stores, 2 loads, 3 does both.
  static constexpr std::uint16_t codeOf(Link link, Source a, Source b = Source::kMemory) {
    constexpr int kOfOne = static_cast<int>(Link::kSelect);  // those of two operands come after it
    const int number = static_cast<int>(link);
    const int row = number < kOfOne ? number : number + (number - kOfOne) * (kNumSources - 1);
    const int second = number < kOfOne ? 0 : static_cast<int>(b);
    return static_cast<std::uint16_t>(((row + second) * kNumSources + static_cast<int>(a)) * 4);
  }
  bool loads() const { return (code & 2u) != 0; }
  bool stores() const { return (code & 1u) != 0; }
  /// Whether it only loads vectors from memory.
  bool isLoad() const { return code == codeOf(Link::kLoad, Source::kMemory); }
  bool isStore() const { return link >= Link::kStore && link <= Link::kStoreHalf; }
  /// Makes an operation first do what `load` does.
  void loadFirst(const ChainLink& load) {
    code |= 2u;
    from = load.a;
  }
  /// Makes a link also store the accumulator, 4 bytes per element. Not for stores; before joins.
  void storeAfter(std::uint8_t memory) {
    code |= 1u;
    to = memory;
  }

  /// Makes it also do what `next` does, with b as next's operand; false if no link does both.
  bool join(const ChainLink& next);

  Link link;
  std::uint16_t code;
  std::uint8_t a, b;  ///< numbers of memory, like the last two
  std::uint8_t from = 0, to = 0;
};
constexpr std::size_t kNumSingleCodes =
    ChainLink::codeOf(Link::kSelectFalse, Source::kKeptMask, Source::kKeptMask) + 4;

/// Any two consecutive links of these kinds can be one link: this saves a jump for each strip.
constexpr std::array kJoined{Link::kAdd, Link::kSubtract, Link::kSubtractFrom, Link::kMultiply};
constexpr std::array kJoinedSources{Source::kMemory, Source::kScalar};
constexpr std::size_t kNumJoined = kJoined.size() * kJoinedSources.size();
/// `first` and `second`: places among kJoined, each with all of kJoinedSources.
constexpr std::uint16_t joinedCode(std::size_t first, std::size_t second) {
  return static_cast<std::uint16_t>(kNumSingleCodes + (first * kNumJoined + second) * 4);
}
constexpr std::size_t kNumLinkCodes = joinedCode(kNumJoined, 0);

constexpr std::size_t kMostChainMemory = 256;  ///< a link numbers its operands in a byte
/// Memory that the operands of links name by number.
struct ChainMemory {
  std::byte* at[kMostChainMemory];
  std::size_t num_kept = 0;  ///< places for kept strips among it, each of stretchOf(num_kept)
  /// For runChain: the link where each strip begins, and the elements of the stretch.
  const ChainLink* first;
  std::int64_t end;
};

/// Runs all links, up to kEnd, on n elements: n is a multiple of chainLanes(). Advances memory by n
/// times its `steps`, the bytes of an element or 0.
void runChain(const ChainLink* links, ChainMemory& memory, std::span<const std::uint8_t> steps,
              std::int64_t n);
std::int64_t chainLanes();  ///< elements of one vector of this CPU, at most 16

}  // namespace ipujax::engine::simd
