#pragma once
#include <cstdint>

#include "engine/code/Strip.hpp"

/// Floats and their bits that record what is done to them as steps of a program: the kind of values
/// with which FloatFormulas (engine/ops) makes code.
namespace ipujax::engine::expr::recorded {

inline thread_local code::StripBuilder* builder = nullptr;  ///< of the thread's formula

struct Truth {
  code::StripBuilder::Value value;
};
struct Word {
  Word(std::uint32_t number) : value(builder->bits(number)) {}  // NOLINT: as built-in types
  explicit Word(code::StripBuilder::Value v) : value(v) {}
  code::StripBuilder::Value value;
};
struct Number {
  Number(float x) : value(builder->number(x)) {}  // NOLINT: as built-in types
  explicit Number(code::StripBuilder::Value v) : value(v) {}
  Number operator-() const {
    return Number(builder->add(code::StripOp::kXor, value, builder->bits(0x80000000u)));
  }
  code::StripBuilder::Value value;
};
#define RECORDED(Result, Type, symbol, op)                            \
  inline Result operator symbol(const Type& a, const Type& b) {       \
    return Result{builder->add(code::StripOp::op, a.value, b.value)}; \
  }
RECORDED(Number, Number, +, kAdd)
RECORDED(Number, Number, -, kSubtract)
RECORDED(Number, Number, *, kMultiply)
RECORDED(Number, Number, /, kDivide)
RECORDED(Truth, Number, <, kLess)
RECORDED(Truth, Number, <=, kLessEqual)
RECORDED(Truth, Number, ==, kEqual)
RECORDED(Word, Word, +, kAddInt)
RECORDED(Word, Word, -, kSubtractInt)
RECORDED(Word, Word, &, kAnd)
RECORDED(Word, Word, |, kOr)
RECORDED(Word, Word, <<, kShiftLeft)
RECORDED(Word, Word, >>, kShiftRight)
#undef RECORDED

struct Math {
  using F = Number;
  using U = Word;
  static F madd(const F& a, const F& b, const F& c) {
    return F(builder->add(code::StripOp::kMultiplyAdd, a.value, b.value, c.value));
  }
  static U bits(const F& x) { return U(x.value); }
  static F of(const U& x) { return F(x.value); }
  static F choose(const Truth& truth, const F& a, const F& b) {
    return F(builder->add(code::StripOp::kSelect, truth.value, a.value, b.value));
  }
  static Truth isNan(const F& x) {
    return {builder->add(code::StripOp::kUnordered, x.value, x.value)};
  }
  static U least(const U& a, const U& b) {
    return U(builder->add(code::StripOp::kSmallerUInt, a.value, b.value));
  }
  static U leastSigned(const U& a, const U& b) {
    return U(builder->add(code::StripOp::kSmallerInt, a.value, b.value));
  }
  static U shiftSigned(const U& x, std::uint32_t n) {
    return U(builder->add(code::StripOp::kShiftRightSign, x.value, builder->bits(n)));
  }
  static F toFloat(const U& x) { return F(builder->add(code::StripOp::kIntToFloat, x.value)); }
};

}  // namespace ipujax::engine::expr::recorded
