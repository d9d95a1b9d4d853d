#include <cmath>
#include <cstdint>
#include <cstring>

#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {
namespace {

/// Writes the cycles so far as two words, the lower first; if there is an earlier stamp, the cycles
/// since it ended.
std::unique_ptr<Kernel> makeCycleStamp(const StepDesc& step) {
  const bool is_difference = step.operands.size() == 2;
  const auto own = is_difference ? step.attributes.integer("own") : 0;
  return kernelOf([is_difference, own](RunContext& context, std::span<std::byte* const> pointers) {
    auto cycles = static_cast<std::uint64_t>(std::llround(context.cycles));
    std::uint64_t earlier = 0;
    if (is_difference) std::memcpy(&earlier, pointers[0], sizeof earlier);
    cycles -= earlier + static_cast<std::uint64_t>(own);
    std::memcpy(pointers[is_difference ? 1 : 0], &cycles, sizeof cycles);
  });
}

void checkCycleStamp(StepCheck& check) {
  const bool is_difference = check.numOperands() == 2;
  check.operands(is_difference ? 2 : 1);
  if (is_difference) {
    check.read(0).isOfBytes(4).hasElements(2).isContiguous();
    check.integer("own", 0, StepCheck::kMostElements);  // cycles of a stamp itself
  }
  check.written(is_difference ? 1 : 0).isOfBytes(4).hasElements(2).isContiguous();
}

const RegisterKernel kCycleStamp{"engine.cycle_stamp", makeCycleStamp, checkCycleStamp,
                                 KernelRole::kCycleStamp};

}  // namespace
}  // namespace ipujax::engine
