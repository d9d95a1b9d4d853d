#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/reduce/ReduceFinish.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"

/// The kernel "popops.reduce": one named reducer over "dims" of operand 0.
namespace ipujax::engine {
namespace {

using reduction::Loops;
using reduction::Reducer;

std::unique_ptr<Kernel> makeReduce(const StepDesc& step) {
  const auto& in = step.operands[0];
  const auto reducer = static_cast<Reducer>(step.attributes.integer("reducer"));
  const Loops& loops = *reduction::loopsFor(reducer, in.type);
  const bool rounds = reduction::isRoundingSum(reducer, loops);
  reduction::StridedReduce plan(loops, rounds, in.type, in.shape, in.strides,
                                step.attributes.integers("dims"));
  const reduction::Finish finish(step, 1, loops);
  return kernelOf(
      [plan = std::move(plan), finish](RunContext& context, std::span<std::byte* const> pointers) {
        finish.run(plan.numOutputs(), pointers,
                   [&](std::byte* acc) { plan.run(context.pool, pointers[0], acc); });
      });
}

void checkReduce(StepCheck& check) {
  const auto in = check.read(0);
  const Loops& loops = reduction::checkReducer(check, in->type);
  reduction::Finish::check(check, 1, loops, reduction::checkKept(check));
}
const RegisterKernel kReduce{"popops.reduce", makeReduce, checkReduce, KernelRole::kReduction};

}  // namespace
}  // namespace ipujax::engine
