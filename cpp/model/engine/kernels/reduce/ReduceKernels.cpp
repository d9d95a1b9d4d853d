#include "engine/kernels/reduce/ReduceKernels.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/Half.hpp"
#include "engine/image/StepCheck.hpp"

namespace ipujax::engine::reduction {

std::optional<Reducer> reducerOf(const expr::ExprProgram& body) {
  using expr::Op;
  constexpr std::pair<Op, Reducer> kOps[] = {
      {Op::kAdd, Reducer::kAdd},         {Op::kMultiply, Reducer::kMultiply},
      {Op::kMinimum, Reducer::kMinimum}, {Op::kMaximum, Reducer::kMaximum},
      {Op::kBitwiseAnd, Reducer::kAnd},  {Op::kBitwiseOr, Reducer::kOr},
      {Op::kBitwiseXor, Reducer::kXor},  {Op::kLogicalAnd, Reducer::kAnd},
      {Op::kLogicalOr, Reducer::kOr},    {Op::kNotEqual, Reducer::kXor}};
  if (body.numInputs() != 2 || body.numOutputs() != 1) return std::nullopt;
  for (const auto& [op, reducer] : kOps) {
    if (!body.isBinary(op)) continue;
    if (op == Op::kNotEqual && body.typeOf(0) != ElementType::kBool) continue;
    if (loopsFor(reducer, body.typeOf(0))) return reducer;
  }
  return std::nullopt;
}

const Loops* loopsFor(Reducer reducer, ElementType input) {
  static const LoopTable& table = IPUJAX_PICK(loopTable());
  const Loops& loops = table.loops[static_cast<int>(reducer)][static_cast<int>(input)];
  return loops.row ? &loops : nullptr;
}

const Loops& checkReducer(const StepCheck& check, ElementType input) {
  const auto reducer = static_cast<Reducer>(check.integer("reducer", 0, kNumReducers - 1));
  const Loops* loops = loopsFor(reducer, input);
  if (!loops) check.refuse("a reducer that has a meaning for its type");
  return *loops;
}

std::int64_t checkKept(const StepCheck& check) {
  const auto in = check.read(0);
  const auto& dims = check.dimensions("dims", in.rank());
  std::int64_t kept = 1;
  for (std::int64_t d = 0; d < in.rank(); ++d)
    if (std::ranges::find(dims, d) == dims.end()) kept *= in->shape[static_cast<std::size_t>(d)];
  return kept;
}

std::uint64_t accumulatorOf(const std::byte* element, ElementType type, const Loops& loops) {
  std::uint64_t bits = 0;
  if (type == ElementType::kHalf) {
    std::uint16_t half;
    std::memcpy(&half, element, sizeof half);
    return std::bit_cast<std::uint32_t>(halfToFloat(half));
  }
  std::memcpy(&bits, element, sizeOf(loops.acc));
  return bits;
}

bool isRoundingSum(Reducer reducer, const Loops& loops) {
  return loops.acc == ElementType::kFloat &&
         (reducer == Reducer::kAdd || reducer == Reducer::kSquareAdd);
}

TapLoop tapLoopFor(Reducer reducer, ElementType input) {
  static const TapTable& table = IPUJAX_PICK(tapTable());
  return table.loops[static_cast<int>(reducer)][static_cast<int>(input)];
}

}  // namespace ipujax::engine::reduction
