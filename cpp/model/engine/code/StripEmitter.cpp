#include "engine/code/StripEmitter.hpp"

#include <map>

namespace ipujax::engine::code {
namespace {

/// Of kCompare, for a and b, and for b and a.
struct Predicate {
  int forward, backward;
};
constexpr Predicate kEqualOrdered{0x00, 0x00}, kLessQuiet{0x11, 0x1e}, kLessEqualQuiet{0x12, 0x1d},
    kEitherNan{0x03, 0x03};
constexpr int kSelectBits = 0xca;  ///< of kTernary: the first chooses between the other two

bool isCommutative(StripOp o) {
  return o == StripOp::kAdd || o == StripOp::kMultiply || o == StripOp::kAddInt ||
         o == StripOp::kMultiplyInt || (o >= StripOp::kAnd && o <= StripOp::kXor);
}

bool isUnary(StripOp o) {
  return o == StripOp::kSquareRoot || o == StripOp::kIntToFloat || o == StripOp::kTruncateToInt;
}

/// Of operations that are one instruction in both instruction sets.
const Opcode* simpleOpcode(StripOp o) {
  static const std::map<StripOp, Opcode> kAll{{StripOp::kAdd, op::kAdd},
                                              {StripOp::kSubtract, op::kSubtract},
                                              {StripOp::kMultiply, op::kMultiply},
                                              {StripOp::kDivide, op::kDivide},
                                              {StripOp::kSquareRoot, op::kSquareRoot},
                                              {StripOp::kLargerOrSecond, op::kLarger},
                                              {StripOp::kSmallerOrSecond, op::kSmaller},
                                              {StripOp::kAddInt, op::kAddInt},
                                              {StripOp::kSubtractInt, op::kSubtractInt},
                                              {StripOp::kMultiplyInt, op::kMultiplyInt},
                                              {StripOp::kShiftLeft, op::kShiftLeft},
                                              {StripOp::kShiftRight, op::kShiftRight},
                                              {StripOp::kShiftRightSign, op::kShiftRightSign},
                                              {StripOp::kLargerInt, op::kLargerInt},
                                              {StripOp::kSmallerInt, op::kSmallerInt},
                                              {StripOp::kLargerUInt, op::kLargerUInt},
                                              {StripOp::kSmallerUInt, op::kSmallerUInt},
                                              {StripOp::kIntToFloat, op::kIntToFloat},
                                              {StripOp::kTruncateToInt, op::kTruncateToInt},
                                              {StripOp::kAnd, op::kAnd},
                                              {StripOp::kOr, op::kOr},
                                              {StripOp::kXor, op::kXor}};
  const auto found = kAll.find(o);
  return found == kAll.end() ? nullptr : &found->second;
}

}  // namespace

/// Where an operand of step i is.
Operand StripEmitter::place(std::size_t i, std::size_t arg, unsigned copy) const {
  const auto v = program_[i].args[arg];
  return v < 0 ? Operand(0u) : placeOf(static_cast<std::size_t>(v), i, copy);
}
/// Where value v is at step i.
Operand StripEmitter::placeOf(std::size_t v, std::size_t i, unsigned copy) const {
  if (at_.isInFrame(v, i)) return inFrame(at_.home(v).frame);
  return at_.home(v).reg + (at_.isVarying(v) ? copy : 0);
}
/// The register with an operand; one from the frame is loaded into a temporary.
unsigned StripEmitter::fetched(std::size_t i, std::size_t arg, unsigned copy) {
  const Operand from = place(i, arg, copy);
  if (!from.is_memory) return from.reg;
  const auto temporary = static_cast<unsigned>(arg);
  out_.vector(op::kMove, temporary, 0, from);
  return temporary;
}
/// The result is written last, since its register may be an operand's.
void StripEmitter::emit(std::size_t i, unsigned copy) {
  const StripStep& step = program_[i];
  const unsigned to = at_.home(i).reg + copy;
  for (const std::size_t v : at_.spills(i))
    out_.vector(op::kMoveTo, at_.home(v).reg, 0, inFrame(at_.home(v).frame));
  if (step.loads()) return load(step, to, copy);
  if (step.stores()) return store(step, fetched(i, 0, copy), copy);
  if (const Opcode* simple = simpleOpcode(step.op)) return emitSimple(*simple, i, to, copy);
  if (step.op == StripOp::kMultiplyAdd) return multiplyAdd(i, to, copy);
  if (isComparison(step.op) && (wide_ || step.op != StripOp::kLessUInt)) {
    compare(i, i, wide_ ? 1 : to, copy);
    return wide_ ? out_.vector(op::kMaskToVector, to, 0, 1u) : void();
  }
  if (step.op == StripOp::kSelect && wide_ && at_.isFused(static_cast<std::size_t>(step.args[0])))
    return selectByComparison(i, to, copy);
  Args a{};
  for (std::size_t arg = 0; arg < 3; ++arg) a[arg] = fetched(i, arg, copy);
  emitOther(step, to, a);
}

/// A polynomial's coefficient may be in memory.
void StripEmitter::multiplyAdd(std::size_t i, unsigned to, unsigned copy) {
  const unsigned a = fetched(i, 0, copy), b = fetched(i, 1, copy);
  if (to == a) return out_.vector(op::kMultiplyAdd213, to, b, place(i, 2, copy));
  if (to == b) return out_.vector(op::kMultiplyAdd213, to, a, place(i, 2, copy));
  const Operand c = place(i, 2, copy);
  if (c.is_memory)
    out_.vector(op::kMove, to, 0, c);
  else if (c.reg != to)
    out_.vector(op::kCopy, to, 0, c);
  out_.vector(op::kMultiplyAdd231, to, a, b);
}

/// The last operand may be in memory.
void StripEmitter::emitSimple(Opcode opcode, std::size_t i, unsigned to, unsigned copy) {
  if (isUnary(program_[i].op)) return out_.vector(opcode, to, 0, place(i, 0, copy));
  const bool swaps = isCommutative(program_[i].op) && place(i, 0, copy).is_memory;
  const unsigned first = fetched(i, swaps ? 1 : 0, copy);
  out_.vector(opcode, to, first, place(i, swaps ? 0 : 1, copy));
}
void StripEmitter::emitOther(const StripStep& step, unsigned to, const Args& a) {
  switch (step.op) {
    case StripOp::kRoundWhole:
      return out_.vector(op::kRoundWhole, to, 0, a[0], static_cast<int>(8 | step.number));
    case StripOp::kRoundToHalf:
      out_.vector(op::kToHalf, a[0], 0, kT3, 0);
      return out_.vector(op::kFromHalf, to, 0, kT3);
    case StripOp::kHighProductInt:
      return highProduct(op::kWideProductInt, to, a);
    case StripOp::kHighProductUInt:
      return highProduct(op::kWideProductUInt, to, a);
    case StripOp::kLessUInt:
      return lessUInt(to, a);
    case StripOp::kRotateLeft:
      return rotateLeft(to, a);
    default:
      return select(to, a);
  }
}

/// The comparison of step c, made at step i; the result of a wide one is a mask register.
void StripEmitter::compare(std::size_t c, std::size_t i, unsigned to, unsigned copy) {
  const StripOp o = program_[c].op;
  const auto operand = [&](std::size_t arg) {
    return placeOf(static_cast<std::size_t>(program_[c].args[arg]), i, copy);
  };
  const auto inRegister = [&](std::size_t arg) {
    const Operand from = operand(arg);
    if (!from.is_memory) return from.reg;
    out_.vector(op::kMove, kT3, 0, from);
    return kT3;
  };
  const bool swaps = operand(0).is_memory && !operand(1).is_memory;
  const std::size_t first = swaps ? 1 : 0, second = 1 - first;
  if (o <= StripOp::kUnordered) {
    const Predicate how = o == StripOp::kEqual       ? kEqualOrdered
                          : o == StripOp::kLess      ? kLessQuiet
                          : o == StripOp::kLessEqual ? kLessEqualQuiet
                                                     : kEitherNan;
    out_.vector(op::kCompare, to, inRegister(first), operand(second),
                swaps ? how.backward : how.forward);
  } else if (wide_) {
    const int how = o == StripOp::kEqualInt ? 0 : swaps ? 6 : 1;  // equal, greater, less
    out_.vector(o == StripOp::kLessUInt ? op::kCompareUInt : op::kCompareInt, to, inRegister(first),
                operand(second), how);
  } else if (o == StripOp::kEqualInt) {
    out_.vector(op::kEqualInt, to, inRegister(first), operand(second));
  } else {  // a < b as b > a
    out_.vector(op::kGreaterInt, to, inRegister(1), operand(0));
  }
}

void StripEmitter::selectByComparison(std::size_t i, unsigned to, unsigned copy) {
  compare(static_cast<std::size_t>(program_[i].args[0]), i, 1, copy);
  const unsigned if_false = fetched(i, 2, copy);
  out_.masked(op::kMaskedBlend, to, if_false, place(i, 1, copy));
}

void StripEmitter::select(unsigned to, const Args& a) {
  if (!wide_) return out_.vector(op::kBlend, to, a[2], a[1], static_cast<int>(a[0] << 4));
  const bool is_apart = to != a[1] && to != a[2];
  const unsigned chosen = is_apart || to == a[0] ? to : kT3;
  if (chosen != a[0]) out_.vector(op::kCopy, chosen, 0, a[0]);
  out_.vector(op::kTernary, chosen, a[1], a[2], kSelectBits);
  if (chosen != to) out_.vector(op::kCopy, to, 0, chosen);
}

/// Products of the even lanes, then of the odd ones.
void StripEmitter::highProduct(Opcode product, unsigned to, const Args& a) {
  out_.vector(product, kT3, a[0], a[1]);
  out_.vector(op::kShiftWideByNumber, kRight, kT3, kT3, 32);
  out_.vector(op::kShiftWideByNumber, kRight, kT4, a[0], 32);
  out_.vector(product, kT4, kT4, a[1]);
  out_.vector(op::kShiftWideByNumber, kRight, kT4, kT4, 32);
  out_.vector(op::kShiftWideByNumber, kLeft, kT4, kT4, 32);
  out_.vector(op::kOr, to, kT3, kT4);
}

void StripEmitter::lessUInt(unsigned to, const Args& a) {
  out_.vector(op::kLargerUInt, kT3, a[0], a[1]);
  out_.vector(op::kEqualInt, kT3, kT3, a[0]);  // a >= b
  setOnes(kT4);
  out_.vector(op::kXor, to, kT3, kT4);
}

void StripEmitter::rotateLeft(unsigned to, const Args& a) {
  if (wide_) {
    // The count is the last operand: vprolvd.
    return out_.vector(op::kRotateLeft, to, a[0], a[1]);
  }
  setOnes(kT4);
  shiftByNumber(kRight, kT4, kT4, 27);  // 31
  out_.vector(op::kSubtractInt, kT4, kT4, a[1]);
  out_.vector(op::kShiftRight, kT4, a[0], kT4);
  shiftByNumber(kRight, kT4, kT4, 1);
  out_.vector(op::kShiftLeft, kT3, a[0], a[1]);
  out_.vector(op::kOr, to, kT3, kT4);
}

}  // namespace ipujax::engine::code
