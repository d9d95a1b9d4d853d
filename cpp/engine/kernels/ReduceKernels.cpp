#include "engine/kernels/ReduceKernels.hpp"

#include "engine/verify/StepCheck.hpp"

namespace ipujax::engine::reduction {

std::string nameOf(Reducer reducer) {
  static const char* const names[] = {"add", "multiply", "minimum",   "maximum", "and",
                                      "or",  "xor",      "squareAdd", "logAdd"};
  return names[static_cast<int>(reducer)];
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

bool isRoundingSum(Reducer reducer, const Loops& loops) {
  return loops.acc == ElementType::kFloat &&
         (reducer == Reducer::kAdd || reducer == Reducer::kSquareAdd);
}

TapLoop tapLoopFor(Reducer reducer, ElementType input) {
  static const TapTable& table = IPUJAX_PICK(tapTable());
  return table.loops[static_cast<int>(reducer)][static_cast<int>(input)];
}

}  // namespace ipujax::engine::reduction
