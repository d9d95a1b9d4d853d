#include "engine/kernels/reduce/ReduceArg.hpp"

namespace ipujax::engine {

namespace {

using expr::ExprProgram;
using expr::Instruction;
using expr::Op;
using reduction::Reducer;

/// Tests of the values of a straight-line program.
class Matcher {
 public:
  explicit Matcher(const ExprProgram& program) : program_(program) {}

  bool isOp(std::int32_t value, Op op) const {
    const Instruction* i = at(value);
    return i && i->op == op;
  }
  std::int32_t arg(std::int32_t value, int n) const { return at(value)->args[n]; }
  /// op(a, b), or its mirror image: a > b as b < a.
  bool compares(std::int32_t value, Op op, std::int32_t a, std::int32_t b) const {
    const Instruction* i = at(value);
    if (!i) return false;
    if (i->op == op && i->args[0] == a && i->args[1] == b) return true;
    return i->op == mirror(op) && i->args[0] == b && i->args[1] == a;
  }
  template <class F>
  bool either(std::int32_t value, Op logical, Op bitwise, const F& f) const {
    const Instruction* i = at(value);
    if (!i || (i->op != logical && i->op != bitwise)) return false;
    return f(i->args[0], i->args[1]) || f(i->args[1], i->args[0]);
  }
  bool isNan(std::int32_t value, std::int32_t x) const {
    return (isOp(value, Op::kIsNan) && arg(value, 0) == x) || compares(value, Op::kNotEqual, x, x);
  }

 private:
  const Instruction* at(std::int32_t value) const { return program_.makerOf(value); }
  static Op mirror(Op op) {
    if (op == Op::kGreaterThan) return Op::kLessThan;
    return op == Op::kLessThan ? Op::kGreaterThan : op;  // equality
  }
  const ExprProgram& program_;
};

bool isArg(const Matcher& m, const ExprProgram& body, Op better) {
  // Inputs: 0 value, 1 index (accumulators); 2 value, 3 index (new).
  const std::int32_t value = body.outputs()[0];
  const std::int32_t index = body.outputs()[1];
  if (!m.isOp(value, Op::kSelect) || m.arg(value, 0) != 0 || m.arg(value, 1) != 2) return false;
  if (!m.isOp(index, Op::kSelect) || m.arg(index, 0) != 1 || m.arg(index, 1) != 3) return false;
  const std::int32_t keep_value = m.arg(value, 2);
  const std::int32_t keep_index = m.arg(index, 2);
  const bool with_nan = m.either(
      keep_value, Op::kLogicalOr, Op::kBitwiseOr,
      [&](std::int32_t a, std::int32_t b) { return m.compares(a, better, 0, 2) && m.isNan(b, 0); });
  const bool plain = body.typeOf(0) == ElementType::kInt32 && m.compares(keep_value, better, 0, 2);
  if (!with_nan && !plain) return false;
  return m.either(keep_index, Op::kLogicalOr, Op::kBitwiseOr, [&](std::int32_t a, std::int32_t b) {
    return a == keep_value &&
           m.either(b, Op::kLogicalAnd, Op::kBitwiseAnd, [&](std::int32_t c, std::int32_t d) {
             return m.compares(c, Op::kEqual, 0, 2) && m.compares(d, Op::kLessThan, 1, 3);
           });
  });
}

}  // namespace

std::optional<Reducer> argReducerOf(const ExprProgram& body) {
  if (body.numInputs() != 4 || body.numOutputs() != 2) return std::nullopt;
  const ElementType type = body.typeOf(0);
  const bool known =
      type == ElementType::kFloat || type == ElementType::kHalf || type == ElementType::kInt32;
  if (!known || body.typeOf(1) != ElementType::kInt32) return std::nullopt;
  const Matcher matcher(body);
  if (isArg(matcher, body, Op::kGreaterThan)) return Reducer::kMaximum;
  if (isArg(matcher, body, Op::kLessThan)) return Reducer::kMinimum;
  return std::nullopt;
}

}  // namespace ipujax::engine
