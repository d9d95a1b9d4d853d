#pragma once
#include <array>

#include "engine/code/Encoder.hpp"
#include "engine/code/Strip.hpp"
#include "engine/code/StripPlacement.hpp"

namespace ipujax::engine::code {

namespace op {
inline constexpr Opcode kMove{0, 1, 0x10}, kMoveTo{0, 1, 0x11}, kCopy{0, 1, 0x28};
inline constexpr Opcode kAdd{0, 1, 0x58}, kMultiply{0, 1, 0x59}, kSubtract{0, 1, 0x5c};
inline constexpr Opcode kDivide{0, 1, 0x5e}, kSmaller{0, 1, 0x5d}, kLarger{0, 1, 0x5f};
inline constexpr Opcode kSquareRoot{0, 1, 0x51}, kCompare{0, 1, 0xc2};
inline constexpr Opcode kMultiplyAdd213{1, 2, 0xa8}, kMultiplyAdd231{1, 2, 0xb8};
inline constexpr Opcode kAnd{1, 1, 0xdb}, kOr{1, 1, 0xeb}, kXor{1, 1, 0xef};
inline constexpr Opcode kAddInt{1, 1, 0xfe}, kSubtractInt{1, 1, 0xfa}, kMultiplyInt{1, 2, 0x40};
inline constexpr Opcode kShiftLeft{1, 2, 0x47}, kShiftRight{1, 2, 0x45},
    kShiftRightSign{1, 2, 0x46};
inline constexpr Opcode kShiftByNumber{1, 1, 0x72}, kRotateLeft{1, 2, 0x15};
inline constexpr Opcode kWideProductInt{1, 2, 0x28, true}, kWideProductUInt{1, 1, 0xf4, true};
inline constexpr Opcode kShiftWideByNumber{1, 1, 0x73, true};
inline constexpr Opcode kLargerInt{1, 2, 0x3d}, kSmallerInt{1, 2, 0x39};
inline constexpr Opcode kLargerUInt{1, 2, 0x3f}, kSmallerUInt{1, 2, 0x3b};
inline constexpr Opcode kEqualInt{1, 1, 0x76}, kGreaterInt{1, 1, 0x66};
inline constexpr Opcode kCompareInt{1, 3, 0x1f}, kCompareUInt{1, 3, 0x1e};
inline constexpr Opcode kMaskToVector{2, 2, 0x38}, kTest{1, 2, 0x27};
inline constexpr Opcode kIntToFloat{0, 1, 0x5b}, kTruncateToInt{2, 1, 0x5b},
    kRoundWhole{1, 3, 0x08};
inline constexpr Opcode kFromHalf{1, 2, 0x13}, kToHalf{1, 3, 0x1d};
inline constexpr Opcode kFromBytes{1, 2, 0x31}, kToBytes{2, 2, 0x31};
inline constexpr Opcode kFromShorts{1, 2, 0x33}, kToShorts{2, 2, 0x33},
    kPackUnsignedWords{1, 2, 0x2b};
inline constexpr Opcode kExtractHigh{1, 3, 0x39}, kPackWords{1, 1, 0x6b}, kPackBytes{1, 1, 0x63};
inline constexpr Opcode kMoveLowTo{1, 1, 0xd6}, kBroadcast{1, 2, 0x18};
inline constexpr Opcode kBlend{1, 3, 0x4a}, kTernary{1, 3, 0x25}, kMaskedBlend{1, 2, 0x64};
}  // namespace op

/// Writes the instructions of single steps. Those that follow from it decide how memory is reached.
class StripEmitter {
 public:
  virtual ~StripEmitter() = default;

 protected:
  static constexpr unsigned kT3 = 3, kT4 = 4;  ///< temporaries for intermediate results
  static constexpr unsigned kRight = 2, kLeft = 6;

  StripEmitter(Encoder& out, const StripProgram& program, const StripPlacement& at, bool wide)
      : out_(out), program_(program), at_(at), wide_(wide) {}

  /// Step i, with the values that go to the frame before it.
  void emit(std::size_t i, unsigned copy);
  virtual void load(const StripStep& step, unsigned to, unsigned copy) = 0;
  virtual void store(const StripStep& step, unsigned from, unsigned copy) = 0;
  void shiftByNumber(unsigned kind, unsigned to, unsigned from, int bits) {
    out_.vector(op::kShiftByNumber, kind, to, from, bits);
  }
  /// Only programs without copies spill, so that each value there has one vector.
  Address inFrame(unsigned place) const {
    return {Gpr::kRsp, 0, static_cast<std::int32_t>(place * vectorBytes())};
  }
  unsigned vectorBytes() const { return wide_ ? 64 : 32; }

  Encoder& out_;
  const StripProgram& program_;
  const StripPlacement& at_;
  const bool wide_;

 private:
  using Args = std::array<unsigned, 3>;
  Operand place(std::size_t i, std::size_t arg, unsigned copy) const;
  Operand placeOf(std::size_t v, std::size_t i, unsigned copy) const;
  unsigned fetched(std::size_t i, std::size_t arg, unsigned copy);
  void emitSimple(Opcode opcode, std::size_t i, unsigned to, unsigned copy);
  void emitOther(const StripStep& step, unsigned to, const Args& a);
  void multiplyAdd(std::size_t i, unsigned to, unsigned copy);
  void compare(std::size_t c, std::size_t i, unsigned to, unsigned copy);
  void selectByComparison(std::size_t i, unsigned to, unsigned copy);
  void select(unsigned to, const Args& a);
  void highProduct(Opcode product, unsigned to, const Args& a);
  void lessUInt(unsigned to, const Args& a);
  void rotateLeft(unsigned to, const Args& a);
  void setOnes(unsigned to) { out_.vector(op::kEqualInt, to, to, to); }  // not of a wide encoder
};

}  // namespace ipujax::engine::code
