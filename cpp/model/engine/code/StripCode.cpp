#include "engine/code/StripCode.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "engine/code/Encoder.hpp"
#include "engine/code/StripPlacement.hpp"
#include "engine/simd/Isa.hpp"

namespace ipujax::engine::code {
namespace {

constexpr unsigned kT3 = 3, kT4 = 4;
constexpr std::array kPointers{Gpr::kR8,  Gpr::kR9,  Gpr::kR10, Gpr::kR11, Gpr::kRdx,
                               Gpr::kRbx, Gpr::kR12, Gpr::kR13, Gpr::kR14, Gpr::kR15};
constexpr std::size_t kFirstSaved = 5;  ///< of these, the caller's

namespace op {
constexpr Opcode kMove{0, 1, 0x10}, kMoveTo{0, 1, 0x11}, kCopy{0, 1, 0x28};
constexpr Opcode kAdd{0, 1, 0x58}, kMultiply{0, 1, 0x59}, kSubtract{0, 1, 0x5c};
constexpr Opcode kDivide{0, 1, 0x5e}, kSmaller{0, 1, 0x5d}, kLarger{0, 1, 0x5f};
constexpr Opcode kSquareRoot{0, 1, 0x51}, kCompare{0, 1, 0xc2};
constexpr Opcode kMultiplyAdd213{1, 2, 0xa8}, kMultiplyAdd231{1, 2, 0xb8};
constexpr Opcode kAnd{1, 1, 0xdb}, kOr{1, 1, 0xeb}, kXor{1, 1, 0xef};
constexpr Opcode kAddInt{1, 1, 0xfe}, kSubtractInt{1, 1, 0xfa}, kMultiplyInt{1, 2, 0x40};
constexpr Opcode kShiftLeft{1, 2, 0x47}, kShiftRight{1, 2, 0x45}, kShiftRightSign{1, 2, 0x46};
constexpr Opcode kShiftByNumber{1, 1, 0x72}, kRotateLeft{1, 2, 0x15};
constexpr Opcode kWideProductInt{1, 2, 0x28, true}, kWideProductUInt{1, 1, 0xf4, true};
constexpr Opcode kShiftWideByNumber{1, 1, 0x73, true};
constexpr Opcode kLargerInt{1, 2, 0x3d}, kSmallerInt{1, 2, 0x39};
constexpr Opcode kLargerUInt{1, 2, 0x3f}, kSmallerUInt{1, 2, 0x3b};
constexpr Opcode kEqualInt{1, 1, 0x76}, kGreaterInt{1, 1, 0x66};
constexpr Opcode kCompareInt{1, 3, 0x1f}, kCompareUInt{1, 3, 0x1e};
constexpr Opcode kMaskToVector{2, 2, 0x38}, kTest{1, 2, 0x27};
constexpr Opcode kIntToFloat{0, 1, 0x5b}, kTruncateToInt{2, 1, 0x5b}, kRoundWhole{1, 3, 0x08};
constexpr Opcode kFromHalf{1, 2, 0x13}, kToHalf{1, 3, 0x1d};
constexpr Opcode kFromBytes{1, 2, 0x31}, kToBytes{2, 2, 0x31};
constexpr Opcode kFromShorts{1, 2, 0x33}, kToShorts{2, 2, 0x33}, kPackUnsignedWords{1, 2, 0x2b};
constexpr Opcode kExtractHigh{1, 3, 0x39}, kPackWords{1, 1, 0x6b}, kPackBytes{1, 1, 0x63};
constexpr Opcode kMoveLowTo{1, 1, 0xd6}, kBroadcast{1, 2, 0x18};
constexpr Opcode kBlend{1, 3, 0x4a}, kTernary{1, 3, 0x25}, kMaskedBlend{1, 2, 0x64};
}  // namespace op
/// Of kCompare, for a and b, and for b and a.
struct Predicate {
  int forward, backward;
};
constexpr Predicate kEqualOrdered{0x00, 0x00}, kLessQuiet{0x11, 0x1e}, kLessEqualQuiet{0x12, 0x1d},
    kEitherNan{0x03, 0x03};
constexpr int kSelectBits = 0xca;  ///< of kTernary: the first chooses between the other two

/// Makes the code of one program; lives for one.
class Generator {
 public:
  Generator(const StripProgram& program, bool wide)
      : program_(program), wide_(wide), lanes_(wide ? 16 : 8), out_(wide), at_(program, wide) {
    findPointers();
  }

  std::vector<std::uint8_t> generate() {
    begin();
    loop(at_.copies());
    if (at_.copies() > 1) loop(1);
    end();
    return out_.bytes();
  }

 private:
  using Args = std::array<unsigned, 3>;

  void findPointers() {
    for (const StripStep& step : program_) {
      const bool is_known = std::ranges::find(pointers_, step.number) != pointers_.end();
      if ((step.loads() || step.stores()) && !is_known && pointers_.size() < kPointers.size())
        pointers_.push_back(step.number);
    }
  }

  // Code ------------------------------------------------------------------------------------------

  /// Arguments: rdi: the pointers; rsi: n. rcx is the first element of the strip.
  void begin() {
    out_.push(Gpr::kRbp);
    out_.move(Gpr::kRbp, Gpr::kRsp);
    for (std::size_t p = kFirstSaved; p < pointers_.size(); ++p) out_.push(kPointers[p]);
    out_.add(Gpr::kRsp, -static_cast<std::int32_t>(at_.numFrame() * lanes_ * 4));
    out_.bitwiseAnd(Gpr::kRsp, -64);
    for (std::size_t v = 0; v < program_.size(); ++v)
      if (!at_.isVarying(v)) setUniform(v);
    for (std::size_t p = 0; p < pointers_.size(); ++p)
      out_.load(kPointers[p], {Gpr::kRdi, 0, static_cast<std::int32_t>(8 * pointers_[p])});
    out_.zero(Gpr::kRcx);
  }

  void setUniform(std::size_t v) {
    const StripStep& step = program_[v];
    const auto& home = at_.home(v);
    const bool is_kept = home.reg != StripPlacement::kNowhere;
    const unsigned to = is_kept ? home.reg : kT3;
    if (step.op == StripOp::kNumber) {
      out_.setEax(step.number);
    } else {
      out_.load(Gpr::kRax, {Gpr::kRdi, 0, static_cast<std::int32_t>(8 * step.number)});
      if (step.op == StripOp::kScalarMask) out_.setEaxByByte({Gpr::kRax});
      if (step.op == StripOp::kScalarBFloat16) out_.setEaxByHighBytes({Gpr::kRax});
    }
    if (step.op == StripOp::kScalar) {
      out_.vector(op::kBroadcast, to, 0, Address{Gpr::kRax});
    } else {
      out_.moveFromEax(kT4);
      out_.vector(op::kBroadcast, to, 0, kT4);
    }
    if (!is_kept) out_.vector(op::kMoveTo, to, 0, inFrame(home.frame));
  }

  void end() {
    const std::size_t saved = pointers_.size() > kFirstSaved ? pointers_.size() - kFirstSaved : 0;
    out_.addressOf(Gpr::kRsp, {Gpr::kRbp, 0, -static_cast<std::int32_t>(8 * saved)});
    for (std::size_t p = pointers_.size(); p-- > kFirstSaved;) out_.pop(kPointers[p]);
    out_.pop(Gpr::kRbp);
    out_.zeroUpper();
    out_.ret();
  }

  void loop(unsigned copies) {
    const auto elements = static_cast<std::int32_t>(copies * lanes_);
    const std::size_t top = out_.place();
    out_.addressOf(Gpr::kRax, {Gpr::kRcx, 0, elements});
    out_.compare(Gpr::kRax, Gpr::kRsi);
    const std::size_t done = out_.jumpIf(Condition::kGreater);
    for (std::size_t i = 0; i < program_.size(); ++i) {
      if (!at_.isInLoop(i)) continue;
      for (unsigned c = 0; c < copies; ++c) {
        for (const std::size_t v : at_.spills(i))
          out_.vector(op::kMoveTo, at_.home(v).reg, 0, inFrame(at_.home(v).frame));
        emit(i, c);
      }
    }
    out_.add(Gpr::kRcx, elements);
    out_.jumpBack(top);
    out_.bind(done);
  }

  /// Only programs without copies spill, so that each value there has one vector.
  Address inFrame(unsigned place) const {
    return {Gpr::kRsp, 0, static_cast<std::int32_t>(place * lanes_ * 4)};
  }

  /// The address of this copy's elements; may change rax.
  Address memory(const StripStep& step, unsigned copy, int bytes) {
    const auto found = std::ranges::find(pointers_, step.number);
    Gpr base = Gpr::kRax;
    if (found != pointers_.end())
      base = kPointers[static_cast<std::size_t>(found - pointers_.begin())];
    else
      out_.load(base, {Gpr::kRdi, 0, static_cast<std::int32_t>(8 * step.number)});
    return {base, bytes, static_cast<std::int32_t>(copy * lanes_) * bytes};
  }

  /// Where an operand of step i is.
  Operand place(std::size_t i, std::size_t arg, unsigned copy) const {
    const auto v = program_[i].args[arg];
    return v < 0 ? Operand(0u) : placeOf(static_cast<std::size_t>(v), i, copy);
  }
  /// Where value v is at step i.
  Operand placeOf(std::size_t v, std::size_t i, unsigned copy) const {
    if (at_.isInFrame(v, i)) return inFrame(at_.home(v).frame);
    return at_.home(v).reg + (at_.isVarying(v) ? copy : 0);
  }
  /// The register with an operand; one from the frame is loaded into a temporary.
  unsigned fetched(std::size_t i, std::size_t arg, unsigned copy) {
    const Operand from = place(i, arg, copy);
    if (!from.is_memory) return from.reg;
    const auto temporary = static_cast<unsigned>(arg);
    out_.vector(op::kMove, temporary, 0, from);
    return temporary;
  }
  /// The result is written last, since its register may be an operand's.
  void emit(std::size_t i, unsigned copy) {
    const StripStep& step = program_[i];
    const unsigned to = at_.home(i).reg + copy;
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
  void multiplyAdd(std::size_t i, unsigned to, unsigned copy) {
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
  void emitSimple(Opcode opcode, std::size_t i, unsigned to, unsigned copy) {
    if (isUnary(program_[i].op)) return out_.vector(opcode, to, 0, place(i, 0, copy));
    const bool swaps = isCommutative(program_[i].op) && place(i, 0, copy).is_memory;
    const unsigned first = fetched(i, swaps ? 1 : 0, copy);
    out_.vector(opcode, to, first, place(i, swaps ? 0 : 1, copy));
  }
  static bool isCommutative(StripOp o) {
    return o == StripOp::kAdd || o == StripOp::kMultiply || o == StripOp::kAddInt ||
           o == StripOp::kMultiplyInt || (o >= StripOp::kAnd && o <= StripOp::kXor);
  }

  static bool isUnary(StripOp o) {
    return o == StripOp::kSquareRoot || o == StripOp::kIntToFloat || o == StripOp::kTruncateToInt;
  }

  /// Of operations that are one instruction in both instruction sets.
  static const Opcode* simpleOpcode(StripOp o) {
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

  void emitOther(const StripStep& step, unsigned to, const Args& a) {
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
  void compare(std::size_t c, std::size_t i, unsigned to, unsigned copy) {
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
      out_.vector(o == StripOp::kLessUInt ? op::kCompareUInt : op::kCompareInt, to,
                  inRegister(first), operand(second), how);
    } else if (o == StripOp::kEqualInt) {
      out_.vector(op::kEqualInt, to, inRegister(first), operand(second));
    } else {  // a < b as b > a
      out_.vector(op::kGreaterInt, to, inRegister(1), operand(0));
    }
  }

  void selectByComparison(std::size_t i, unsigned to, unsigned copy) {
    compare(static_cast<std::size_t>(program_[i].args[0]), i, 1, copy);
    const unsigned if_false = fetched(i, 2, copy);
    out_.masked(op::kMaskedBlend, to, if_false, place(i, 1, copy));
  }

  void select(unsigned to, const Args& a) {
    if (!wide_) return out_.vector(op::kBlend, to, a[2], a[1], static_cast<int>(a[0] << 4));
    const bool is_apart = to != a[1] && to != a[2];
    const unsigned chosen = is_apart || to == a[0] ? to : kT3;
    if (chosen != a[0]) out_.vector(op::kCopy, chosen, 0, a[0]);
    out_.vector(op::kTernary, chosen, a[1], a[2], kSelectBits);
    if (chosen != to) out_.vector(op::kCopy, to, 0, chosen);
  }

  /// Products of the even lanes, then of the odd ones.
  void highProduct(Opcode product, unsigned to, const Args& a) {
    out_.vector(product, kT3, a[0], a[1]);
    out_.vector(op::kShiftWideByNumber, kRight, kT3, kT3, 32);
    out_.vector(op::kShiftWideByNumber, kRight, kT4, a[0], 32);
    out_.vector(product, kT4, kT4, a[1]);
    out_.vector(op::kShiftWideByNumber, kRight, kT4, kT4, 32);
    out_.vector(op::kShiftWideByNumber, kLeft, kT4, kT4, 32);
    out_.vector(op::kOr, to, kT3, kT4);
  }

  void lessUInt(unsigned to, const Args& a) {
    out_.vector(op::kLargerUInt, kT3, a[0], a[1]);
    out_.vector(op::kEqualInt, kT3, kT3, a[0]);  // a >= b
    setOnes(kT4);
    out_.vector(op::kXor, to, kT3, kT4);
  }

  void rotateLeft(unsigned to, const Args& a) {
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

  static constexpr unsigned kRight = 2, kLeft = 6;
  void shiftByNumber(unsigned kind, unsigned to, unsigned from, int bits) {
    out_.vector(op::kShiftByNumber, kind, to, from, bits);
  }
  void setOnes(unsigned to) { out_.vector(op::kEqualInt, to, to, to); }  // not of a wide encoder

  void load(const StripStep& step, unsigned to, unsigned copy) {
    if (step.op == StripOp::kLoad) return out_.vector(op::kMove, to, 0, memory(step, copy, 4));
    if (step.op == StripOp::kLoadHalf)
      return out_.vector(op::kFromHalf, to, 0, memory(step, copy, 2));
    if (step.op == StripOp::kLoadBFloat16) {
      out_.vector(op::kFromShorts, kT3, 0, memory(step, copy, 2));
      return shiftByNumber(kLeft, to, kT3, 16);
    }
    out_.vector(op::kFromBytes, kT3, 0, memory(step, copy, 1));
    if (wide_) {
      out_.vector(op::kTest, 1, kT3, kT3);
      return out_.vector(op::kMaskToVector, to, 0, 1u);
    }
    out_.vector(op::kXor, kT4, kT4, kT4);
    out_.vector(op::kGreaterInt, to, kT3, kT4);
  }

  void store(const StripStep& step, unsigned from, unsigned copy) {
    if (step.op == StripOp::kStore) return out_.vector(op::kMoveTo, from, 0, memory(step, copy, 4));
    if (step.op == StripOp::kStoreHalf)
      return out_.vector(op::kToHalf, from, 0, memory(step, copy, 2), 0);
    const bool is_short = step.op == StripOp::kStoreBFloat16;
    shiftByNumber(kRight, kT3, from, is_short ? 16 : 31);
    const Address at = memory(step, copy, is_short ? 2 : 1);
    if (wide_) return out_.vector(is_short ? op::kToShorts : op::kToBytes, kT3, 0, at);
    out_.vector(op::kExtractHigh, kT3, 0, kT4, 1);
    if (is_short) {
      out_.shortVector(op::kPackUnsignedWords, kT3, kT3, kT4);
      return out_.shortVector(op::kMoveTo, kT3, 0, at);
    }
    out_.shortVector(op::kPackWords, kT3, kT3, kT4);
    out_.shortVector(op::kPackBytes, kT3, kT3, kT3);
    out_.shortVector(op::kMoveLowTo, kT3, 0, at);
  }

  const StripProgram& program_;
  const bool wide_;
  const unsigned lanes_;
  Encoder out_;
  StripPlacement at_;
  std::vector<std::uint32_t> pointers_;  ///< numbers of the memory in kPointers
};

std::string keyOf(const StripProgram& program) {
  std::string key;
  for (const StripStep& step : program) {
    key += static_cast<char>(step.op);
    for (const auto a : step.args) key.append(reinterpret_cast<const char*>(&a), sizeof a);
    key.append(reinterpret_cast<const char*>(&step.number), sizeof step.number);
  }
  return key;
}

}  // namespace

std::int64_t stripLanes() {
  if (isa() == Isa::kBaseline || !isAvailable()) return 0;
  return isa() == Isa::kAvx512 ? 16 : 8;
}

std::vector<std::uint8_t> stripBytes(const StripProgram& program, bool wide) {
  return Generator(program, wide).generate();
}

std::shared_ptr<const Code> stripCode(const StripProgram& program) {
  if (stripLanes() == 0) return nullptr;
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::string, std::weak_ptr<const Code>>;
  std::string key = keyOf(program);
  const std::scoped_lock lock(mutex);
  if (auto code = known[key].lock()) return code;
  if (known.size() > 1000) std::erase_if(known, [](const auto& e) { return e.second.expired(); });
  auto code = publish(stripBytes(program, isa() == Isa::kAvx512));
  known[std::move(key)] = code;
  return code;
}

}  // namespace ipujax::engine::code
