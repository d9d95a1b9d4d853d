#include "engine/code/Encoder.hpp"

namespace ipujax::engine::code {
namespace {

constexpr unsigned numberOf(Gpr r) { return static_cast<unsigned>(r); }
constexpr unsigned kIndex = numberOf(Gpr::kRcx);
constexpr unsigned kNoIndex = numberOf(Gpr::kRsp);  ///< a SIB byte's index field without a register

/// Bit `n`, inverted as prefixes have it.
constexpr unsigned inverted(unsigned number, unsigned n) { return (~number >> n) & 1u; }

}  // namespace

void Encoder::word(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) byte(value >> shift & 0xffu);
}

void Encoder::rex(bool is_64, unsigned reg, unsigned index, unsigned base) {
  byte(0x40u | (is_64 ? 8u : 0u) | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3);
}

/// Memory always has a SIB byte and an offset of 32 bits, which no prefix scales.
void Encoder::modRm(unsigned reg, const Operand& rm) {
  if (!rm.is_memory) return byte(0xc0u | (reg & 7u) << 3 | (rm.reg & 7u));
  byte(0x84u | (reg & 7u) << 3);
  const unsigned log = rm.at.scale == 8 ? 3 : rm.at.scale == 4 ? 2 : rm.at.scale == 2 ? 1 : 0;
  byte(log << 6 | (rm.at.scale > 0 ? kIndex : kNoIndex) << 3 | (numberOf(rm.at.base) & 7u));
  word(static_cast<std::uint32_t>(rm.at.offset));
}

void Encoder::vex(Opcode op, unsigned reg, unsigned second, const Operand& rm, bool is_256) {
  const unsigned base = rm.is_memory ? numberOf(rm.at.base) : rm.reg;
  byte(0xc4);
  byte(inverted(reg, 3) << 7 | 1u << 6 | inverted(base, 3) << 5 | op.map);
  byte((~second & 15u) << 3 | (is_256 ? 4u : 0u) | op.prefix);
  byte(op.number);
  modRm(reg, rm);
}

void Encoder::evex(Opcode op, unsigned reg, unsigned second, const Operand& rm, unsigned mask) {
  const unsigned base = rm.is_memory ? numberOf(rm.at.base) : rm.reg;
  const unsigned x = rm.is_memory ? 1u : inverted(rm.reg, 4);
  byte(0x62);
  byte(inverted(reg, 3) << 7 | x << 6 | inverted(base, 3) << 5 | inverted(reg, 4) << 4 | op.map);
  byte((op.is_64 ? 0x80u : 0u) | (~second & 15u) << 3 | 4u | op.prefix);
  byte(2u << 5 | inverted(second, 4) << 3 | mask);
  byte(op.number);
  modRm(reg, rm);
}

void Encoder::vector(Opcode op, unsigned reg, unsigned second, const Operand& rm, int immediate) {
  if (bits_ == 512)
    evex(op, reg, second, rm);
  else
    vex(op, reg, second, rm, bits_ == 256);
  if (immediate != kNoImmediate) byte(static_cast<unsigned>(immediate));
}

void Encoder::masked(Opcode op, unsigned reg, unsigned second, const Operand& rm) {
  evex(op, reg, second, rm, 1);
}

void Encoder::shortVector(Opcode op, unsigned reg, unsigned second, const Operand& rm,
                          int immediate) {
  vex(op, reg, second, rm, false);
  if (immediate != kNoImmediate) byte(static_cast<unsigned>(immediate));
}

void Encoder::moveFromEax(unsigned xmm) { shortVector({1, 1, 0x6e}, xmm, 0, numberOf(Gpr::kRax)); }

void Encoder::zeroUpper() {
  byte(0xc5);
  byte(0xf8);
  byte(0x77);
}

void Encoder::push(Gpr r) {
  rex(false, 0, 0, numberOf(r));
  byte(0x50u | (numberOf(r) & 7u));
}
void Encoder::pop(Gpr r) {
  rex(false, 0, 0, numberOf(r));
  byte(0x58u | (numberOf(r) & 7u));
}
void Encoder::move(Gpr to, Gpr from) {
  rex(true, numberOf(to), 0, numberOf(from));
  byte(0x8b);
  modRm(numberOf(to), numberOf(from));
}
void Encoder::load(Gpr to, const Address& from) {
  rex(true, numberOf(to), 0, numberOf(from.base));
  byte(0x8b);
  modRm(numberOf(to), from);
}
void Encoder::addressOf(Gpr to, const Address& from) {
  rex(true, numberOf(to), 0, numberOf(from.base));
  byte(0x8d);
  modRm(numberOf(to), from);
}
void Encoder::setEax(std::uint32_t number) {
  byte(0xb8);
  word(number);
}

void Encoder::setEaxByByte(const Address& at) {
  rex(false, 0, 0, numberOf(at.base));  // cmp byte [at], 1: the carry is set if it is 0
  byte(0x80);
  modRm(7, at);
  byte(1);
  byte(0x19);  // sbb eax, eax
  byte(0xc0);
  byte(0xf7);  // not eax
  byte(0xd0);
}

void Encoder::zero(Gpr r) {
  rex(true, numberOf(r), 0, numberOf(r));
  byte(0x31);
  modRm(numberOf(r), numberOf(r));
}
void Encoder::add(Gpr r, std::int32_t number) {
  rex(true, 0, 0, numberOf(r));
  byte(0x81);
  modRm(0, numberOf(r));
  word(static_cast<std::uint32_t>(number));
}
void Encoder::bitwiseAnd(Gpr r, std::int8_t number) {
  rex(true, 0, 0, numberOf(r));
  byte(0x83);
  modRm(4, numberOf(r));
  byte(static_cast<std::uint8_t>(number));
}
void Encoder::compare(Gpr a, Gpr b) {
  rex(true, numberOf(a), 0, numberOf(b));
  byte(0x3b);
  modRm(numberOf(a), numberOf(b));
}
void Encoder::ret() { byte(0xc3); }

void Encoder::loadInteger(Gpr to, const Address& from, std::size_t bytes, bool is_signed) {
  rex(is_signed || bytes == 8, numberOf(to), 0, numberOf(from.base));
  if (bytes < 4) {
    byte(0x0f);
    byte((bytes == 1 ? 0xb6u : 0xb7u) | (is_signed ? 8u : 0u));  // movzx, movsx
  } else {
    byte(bytes == 4 && is_signed ? 0x63 : 0x8b);  // movsxd, mov
  }
  modRm(numberOf(to), from);
}
void Encoder::storeInteger(Gpr from, const Address& to, std::size_t bytes) {
  if (bytes == 2) byte(0x66);
  rex(bytes == 8, numberOf(from), 0, numberOf(to.base));
  byte(bytes == 1 ? 0x88 : 0x89);
  modRm(numberOf(from), to);
}
void Encoder::setInteger(Gpr to, std::int64_t number) {
  rex(true, 0, 0, numberOf(to));
  byte(0xb8u | (numberOf(to) & 7u));
  word(static_cast<std::uint32_t>(number));
  word(static_cast<std::uint32_t>(number >> 32));
}
void Encoder::setMemory(const Address& at, std::int32_t number) {
  rex(true, 0, 0, numberOf(at.base));
  byte(0xc7);
  modRm(0, at);
  word(static_cast<std::uint32_t>(number));
}
void Encoder::addToMemory(const Address& at, std::int8_t number) {
  rex(true, 0, 0, numberOf(at.base));
  byte(0x83);
  modRm(0, at);
  byte(static_cast<std::uint8_t>(number));
}
void Encoder::compareMemory(const Address& at, Gpr b) {
  rex(true, numberOf(b), 0, numberOf(at.base));
  byte(0x39);
  modRm(numberOf(b), at);
}
void Encoder::compareByte(const Address& at, std::uint8_t number) {
  rex(false, 0, 0, numberOf(at.base));
  byte(0x80);
  modRm(7, at);
  byte(number);
}
void Encoder::compareNumber(Gpr a, std::int32_t number) {
  rex(true, 0, 0, numberOf(a));
  byte(0x81);
  modRm(7, numberOf(a));
  word(static_cast<std::uint32_t>(number));
}
void Encoder::moveIf(Condition condition, Gpr to, Gpr from) {
  rex(true, numberOf(to), 0, numberOf(from));
  byte(0x0f);
  byte(0x40u | static_cast<unsigned>(condition));
  modRm(numberOf(to), numberOf(from));
}
void Encoder::add(Gpr to, Gpr from) {
  rex(true, numberOf(to), 0, numberOf(from));
  byte(0x03);
  modRm(numberOf(to), numberOf(from));
}
void Encoder::multiply(Gpr to, Gpr from) {
  rex(true, numberOf(to), 0, numberOf(from));
  byte(0x0f);
  byte(0xaf);
  modRm(numberOf(to), numberOf(from));
}
void Encoder::moveToEax(unsigned xmm) { shortVector({1, 1, 0x7e}, xmm, 0, numberOf(Gpr::kRax)); }
void Encoder::negateEax() {
  byte(0xf7);
  byte(0xd8);
}
void Encoder::call(Gpr target) {
  rex(false, 0, 0, numberOf(target));
  byte(0xff);
  modRm(2, numberOf(target));
}

std::size_t Encoder::jump() {
  byte(0xe9);
  word(0);
  return place();
}
std::size_t Encoder::jumpIf(Condition condition) {
  byte(0x0f);
  byte(0x80u | static_cast<unsigned>(condition));
  word(0);
  return place();
}
void Encoder::bind(std::size_t jump) {
  const auto distance = static_cast<std::uint32_t>(place() - jump);
  for (std::size_t i = 0; i < 4; ++i)
    bytes_[jump - 4 + i] = static_cast<std::uint8_t>(distance >> (8 * i));
}
void Encoder::jumpBack(std::size_t to) {
  byte(0xe9);
  word(static_cast<std::uint32_t>(static_cast<std::int64_t>(to) -
                                  static_cast<std::int64_t>(place() + 4)));
}

}  // namespace ipujax::engine::code
