#include "engine/expr/ExprRotations.hpp"

#include <algorithm>
#include <optional>

namespace ipujax::engine::expr {

namespace {
struct Shift {
  std::int32_t value;
  std::int64_t bits;
};

/// The operand and constant of a shift by 1 to 31 bits.
std::optional<Shift> shiftOf(const ExprProgram& program, std::int32_t value, Op op) {
  const Instruction* shift = program.makerOf(value);
  if (!shift || shift->op != op) return {};
  const Instruction* bits = program.makerOf(shift->args[1]);
  if (!bits || bits->op != Op::kConstant || bits->immediate < 1 || bits->immediate > 31) return {};
  return Shift{shift->args[0], bits->immediate};
}

/// The operand and the distance, if a disjunction is a rotation to the left.
std::optional<Shift> rotationOf(const ExprProgram& program, const Instruction& i) {
  if (i.op != Op::kBitwiseOr || sizeOf(i.type) != 4) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    const auto left = shiftOf(program, i.args[side], Op::kShiftLeft);
    const auto right = shiftOf(program, i.args[1 - side], Op::kShiftRight);
    if (left && right && left->value == right->value && left->bits + right->bits == 32) return left;
  }
  return {};
}
}  // namespace

ExprProgram withRotations(const ExprProgram& program) {
  const auto& all = program.instructions();
  if (std::none_of(all.begin(), all.end(),
                   [&](const Instruction& i) { return rotationOf(program, i).has_value(); }))
    return program;
  ExprBuilder b(program.inputTypes());
  std::vector<std::int32_t> values;
  for (std::size_t i = 0; i < program.numInputs(); ++i) values.push_back(b.input(i));
  for (const auto& i : all) {
    if (const auto rotation = rotationOf(program, i)) {
      const std::int32_t x = values[static_cast<std::size_t>(rotation->value)];
      values.push_back(b.apply(Op::kRotateLeft, {x, b.constant(i.type, rotation->bits)}));
      continue;
    }
    Instruction copy = i;
    for (auto& a : copy.args)
      if (a >= 0) a = values[static_cast<std::size_t>(a)];
    values.push_back(b.again(copy));
  }
  for (auto v : program.outputs()) b.output(values[static_cast<std::size_t>(v)]);
  return b.build();
}

}  // namespace ipujax::engine::expr
