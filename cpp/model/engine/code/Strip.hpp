#pragma once
#include <array>
#include <cstdint>
#include <vector>

/// Elementwise programs on 32-bit lanes: straight-line code in single-assignment form, whose
/// operations are exact or rounded once, so that they give the same bits on every CPU.
namespace ipujax::engine::code {

/// A value is a float, an integer, or a mask, whose lanes have all bits set or none.
enum class StripOp : std::uint8_t {
  kLoad,
  kLoadMask,  ///< from a kBool, one byte per element
  kLoadHalf,  ///< as a float, like the next one
  kLoadBFloat16,
  kScalar,  ///< one element in memory, for all lanes
  kScalarMask,
  kNumber,  ///< these bits in all lanes
  kStore,
  kStoreMask,
  kStoreHalf,      ///< a float, rounded to nearest
  kStoreBFloat16,  ///< the upper 16 bits
  // floats
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kSquareRoot,
  kMultiplyAdd,      ///< a * b + c, rounded once
  kLargerOrSecond,   ///< a > b ? a : b
  kSmallerOrSecond,  ///< a < b ? a : b
  kRoundWhole,       ///< to a whole number; see Rounding
  kRoundToHalf,
  kEqual,
  kLess,
  kLessEqual,
  kUnordered,  ///< a or b is NaN
  // integers
  kAddInt,
  kSubtractInt,
  kMultiplyInt,
  kHighProductInt,   ///< the upper half of 64 bits of a * b; b has one value in all lanes
  kHighProductUInt,  ///< the same, unsigned
  kShiftLeft,        ///< by 32 or more: 0
  kShiftRight,
  kShiftRightSign,  ///< by 32 or more: the sign
  kRotateLeft,      ///< by 0 to 31
  kLargerInt,
  kSmallerInt,
  kLargerUInt,
  kSmallerUInt,
  kEqualInt,
  kLessInt,
  kLessUInt,
  kIntToFloat,
  kTruncateToInt,  ///< from a float; of those out of range: the lowest integer
  // bits
  kAnd,
  kOr,
  kXor,
  kSelect,  ///< a is a mask: a ? b : c
};
enum class Rounding : std::uint8_t { kNearestEven = 0, kDown = 1, kUp = 2, kToZero = 3 };

struct StripStep {
  StripOp op;
  std::array<std::int16_t, 3> args{-1, -1, -1};
  std::uint32_t number = 0;  ///< of memory; the bits of kNumber; the Rounding
  bool isUniform() const { return op >= StripOp::kScalar && op <= StripOp::kNumber; }
  bool loads() const { return op <= StripOp::kLoadBFloat16; }
  bool stores() const { return op >= StripOp::kStore && op <= StripOp::kStoreBFloat16; }
  friend bool operator==(const StripStep&, const StripStep&) = default;
};
using StripProgram = std::vector<StripStep>;  ///< value i is that of step i

/// Makes a program; numbers and scalars that are used twice are one value.
class StripBuilder {
 public:
  using Value = std::int16_t;
  Value add(StripOp op, Value a = -1, Value b = -1, Value c = -1, std::uint32_t number = 0) {
    const StripStep step{op, {a, b, c}, number};
    if (step.isUniform()) {
      for (std::size_t i = 0; i < program_.size(); ++i)
        if (program_[i] == step) return static_cast<Value>(i);
    }
    program_.push_back(step);
    return static_cast<Value>(program_.size() - 1);
  }
  Value memory(StripOp op, std::uint32_t number, Value stored = -1) {
    return add(op, stored, -1, -1, number);
  }
  Value bits(std::uint32_t number) { return add(StripOp::kNumber, -1, -1, -1, number); }
  Value number(float x) { return bits(__builtin_bit_cast(std::uint32_t, x)); }
  StripProgram take() { return std::move(program_); }

 private:
  StripProgram program_;
};

}  // namespace ipujax::engine::code
