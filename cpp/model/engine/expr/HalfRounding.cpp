#include "engine/expr/HalfRounding.hpp"

#include "engine/Errors.hpp"

namespace ipujax::engine::expr {

namespace {
/// Rewrites one program; lives for one call.
class Rewriter {
 public:
  Rewriter(const ExprProgram& program, const HalfBehaviour& behaviour, std::int64_t& stream)
      : program_(program), behaviour_(behaviour), stream_(stream), b_(withKey(program)) {}

  ExprProgram run() {
    for (std::size_t i = 0; i < program_.numInputs(); ++i) values_.push_back(b_.input(i));
    for (const auto& i : program_.instructions()) values_.push_back(rewritten(i));
    for (auto v : program_.outputs()) b_.output(valueOf(v));
    std::vector<std::size_t> kept;
    const ExprProgram made = b_.build();
    return made.isRandom() ? made : made.withoutUnusedInputs(kept);
  }

 private:
  static std::vector<ElementType> withKey(const ExprProgram& program) {
    std::vector<ElementType> types = program.inputTypes();
    types.insert(types.end(), 2, ElementType::kUInt32);
    return types;
  }

  std::int32_t valueOf(std::int32_t v) const { return values_[static_cast<std::size_t>(v)]; }

  std::int32_t rewritten(const Instruction& i) {
    if (i.type != ElementType::kHalf || has(i.op, kKeepsHalves)) return again(i, false);
    const std::int32_t wide =
        i.op == Op::kCast ? b_.cast(valueOf(i.args[0]), ElementType::kFloat) : again(i, true);
    return b_.cast(rounded(wide, i.immediate), ElementType::kHalf);
  }

  /// The instruction on the new operands; `wide`: on floats.
  std::int32_t again(const Instruction& i, bool wide) {
    switch (i.op) {
      case Op::kConstant:
        return b_.constant(i.type, i.immediate);
      case Op::kRandomBits:
        return b_.randomBits(i.immediate);
      case Op::kCast:
        return b_.cast(valueOf(i.args[0]), i.type);
      case Op::kBitcast:
        return b_.bitcast(valueOf(i.args[0]), i.type);
      case Op::kReducePrecision:
        return b_.reducePrecision(valueOf(i.args[0]), static_cast<int>(i.immediate / 256),
                                  static_cast<int>(i.immediate % 256));
      default:
        break;
    }
    std::int32_t args[3] = {};
    const auto count = static_cast<std::size_t>(numOperands(i.op));
    for (std::size_t a = 0; a < count; ++a) {
      args[a] = valueOf(i.args[a]);
      if (wide && b_.typeOf(args[a]) == ElementType::kHalf)
        args[a] = b_.cast(args[a], ElementType::kFloat);
    }
    return b_.apply(i.op, std::span<const std::int32_t>(args, count));
  }

  /// Bits of the stream, mixed with the key; the upper ones depend on all of it.
  std::int32_t randomWord(std::int64_t stream) {
    const std::size_t own = program_.numInputs();
    const auto mixed = [&](Op with, std::int32_t bits, std::size_t word, std::int64_t factor) {
      const auto keyed = b_.apply(with, {bits, b_.input(own + word)});
      return b_.apply(Op::kMultiply, {keyed, integer(factor)});
    };
    const auto bits = mixed(Op::kBitwiseXor, b_.randomBits(stream), 0, 0x85ebca6b);
    const auto high = b_.apply(Op::kShiftRight, {bits, integer(15)});
    return mixed(Op::kAdd, b_.apply(Op::kBitwiseXor, {bits, high}), 1, 0xc2b2ae35);
  }

  std::int32_t integer(std::int64_t bits) { return b_.constant(ElementType::kUInt32, bits); }
  std::int32_t number(double value) { return b_.constantFrom(ElementType::kFloat, value); }

  /// The float to store as half for x, a float.
  std::int32_t rounded(std::int32_t x, std::int64_t stream) {
    std::int32_t y = behaviour_.stochastic ? stochastic(x, stream) : x;
    if (behaviour_.overflow != HalfBehaviour::Overflow::kInfinity) y = limited(y);
    if (y == x) return x;
    return b_.apply(Op::kSelect, {y, x, b_.apply(Op::kIsFinite, {x})});
  }

  /// One of the two halves around x, the nearer one with the greater chance, so that the mean is x:
  /// floor(x / ulp + u) ulp, with u from 0 to 1. u has 12 bits: with the 11 of x / ulp the sum is
  /// exact, so values that are halves do not change.
  std::int32_t stochastic(std::int32_t x, std::int64_t stream) {
    const auto exponent = integer(0x7f800000);
    const auto bits = b_.bitcast(x, ElementType::kUInt32);
    const auto power = b_.bitcast(b_.apply(Op::kBitwiseAnd, {bits, exponent}), ElementType::kFloat);
    const auto ulp = b_.apply(Op::kMaximum,
                              {b_.apply(Op::kMultiply, {power, number(0x1p-10)}), number(0x1p-24)});
    const auto word =
        b_.apply(Op::kShiftRight, {randomWord(stream != 0 ? stream : stream_++), integer(20)});
    const auto u = b_.apply(Op::kMultiply, {b_.cast(word, ElementType::kFloat), number(0x1p-12)});
    const auto sum = b_.apply(Op::kAdd, {b_.apply(Op::kDivide, {x, ulp}), u});
    return b_.apply(Op::kMultiply, {b_.apply(Op::kFloor, {sum}), ulp});
  }

  /// Finite values from 65520 on overflow, since they round to 65536.
  std::int32_t limited(std::int32_t y) {
    if (behaviour_.overflow == HalfBehaviour::Overflow::kSaturate)
      return b_.apply(Op::kClamp, {y, number(-65504), number(65504)});
    const auto beyond = b_.apply(Op::kGreaterThanEqual, {b_.apply(Op::kAbs, {y}), number(65520)});
    const auto nan = b_.constant(ElementType::kFloat, 0x7fc00000);
    return b_.apply(Op::kSelect, {nan, y, beyond});
  }

  const ExprProgram& program_;
  const HalfBehaviour& behaviour_;
  std::int64_t& stream_;
  ExprBuilder b_;
  std::vector<std::int32_t> values_;
};
}  // namespace

ExprProgram withHalfRounding(const ExprProgram& program, const HalfBehaviour& behaviour,
                             std::int64_t& stream) {
  return Rewriter(program, behaviour, stream).run();
}

}  // namespace ipujax::engine::expr
