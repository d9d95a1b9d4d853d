#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

/// Machine code for x86-64 with AVX2 or AVX-512 (docs/decisions/0008). Names and fields are those
/// of Intel's Software Developer's Manual, volume 2.
namespace ipujax::engine::code {

enum class Gpr : std::uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15
};

/// base + rcx * scale + offset; a scale of 0 leaves rcx out.
struct Address {
  Gpr base = Gpr::kRax;
  int scale = 0;
  std::int32_t offset = 0;
};

/// A vector register, or memory.
struct Operand {
  Operand(unsigned number) : reg(number) {}                          // NOLINT: a register
  Operand(const Address& address) : is_memory(true), at(address) {}  // NOLINT: or memory
  bool is_memory = false;
  unsigned reg = 0;
  Address at;
};

/// An instruction on vectors: mandatory prefix (0: none, 1: 66, 2: F3, 3: F2), opcode map (1: 0F,
/// 2: 0F38, 3: 0F3A) and opcode; whether its lanes have 64 bits.
struct Opcode {
  std::uint8_t prefix, map, number;
  bool is_64 = false;
};

enum class Condition : std::uint8_t {
  kEqual = 0x4,
  kNotEqual = 0x5,
  kLess = 0xc,
  kGreaterEqual = 0xd,
  kLessEqual = 0xe,
  kGreater = 0xf
};

class Encoder {
 public:
  /// Vectors of 512 bits have the EVEX prefix, those of 256 or 128 bits VEX.
  explicit Encoder(int bits) : bits_(bits) {}

  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  static constexpr int kNoImmediate = -1;
  /// reg <- op(second, rm); for stores rm is the result. An instruction without a second operand
  /// takes 0.
  void vector(Opcode op, unsigned reg, unsigned second, const Operand& rm,
              int immediate = kNoImmediate);
  /// A blend: lanes that mask register 1 chooses get `rm`, others `second`. Of a wide encoder.
  void masked(Opcode op, unsigned reg, unsigned second, const Operand& rm);
  /// The same in 128 bits, for registers below 16.
  void shortVector(Opcode op, unsigned reg, unsigned second, const Operand& rm,
                   int immediate = kNoImmediate);
  /// xmm <- eax, zero-extended.
  void moveFromEax(unsigned xmm);
  void zeroUpper();

  void push(Gpr r);
  void pop(Gpr r);
  void move(Gpr to, Gpr from);
  void load(Gpr to, const Address& from);
  void addressOf(Gpr to, const Address& from);
  void setEax(std::uint32_t number);
  /// eax <- -1 if the byte there is not 0, else 0.
  void setEaxByByte(const Address& at);
  void zero(Gpr r);
  void add(Gpr r, std::int32_t number);
  void bitwiseAnd(Gpr r, std::int8_t number);
  void compare(Gpr a, Gpr b);
  void ret();

  // Single values in memory. Below 8 bytes they are extended to all 64 bits.
  void loadInteger(Gpr to, const Address& from, std::size_t bytes, bool is_signed);
  void storeInteger(Gpr from, const Address& to, std::size_t bytes);
  void setInteger(Gpr to, std::int64_t number);
  void setMemory(const Address& at, std::int32_t number);  ///< of 8 bytes
  void addToMemory(const Address& at, std::int8_t number);
  void compareMemory(const Address& at, Gpr b);
  void compareByte(const Address& at, std::uint8_t number);
  void compareNumber(Gpr a, std::int32_t number);
  void moveIf(Condition condition, Gpr to, Gpr from);
  void add(Gpr to, Gpr from);
  void multiply(Gpr to, Gpr from);
  void moveToEax(unsigned xmm);
  void negateEax();
  void call(Gpr target);

  /// Jumps name places; `here` binds those that were made before.
  std::size_t jump();
  std::size_t jumpIf(Condition condition);
  void bind(std::size_t jump);
  void jumpBack(std::size_t place);
  std::size_t place() const { return bytes_.size(); }

 private:
  void byte(unsigned value) { bytes_.push_back(static_cast<std::uint8_t>(value)); }
  void word(std::uint32_t value);
  void rex(bool is_64, unsigned reg, unsigned index, unsigned base);
  void modRm(unsigned reg, const Operand& rm);
  void vex(Opcode op, unsigned reg, unsigned second, const Operand& rm, bool is_256);
  void evex(Opcode op, unsigned reg, unsigned second, const Operand& rm, unsigned mask = 0);

  int bits_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace ipujax::engine::code
