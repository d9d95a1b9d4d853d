#pragma once
#include <cstdint>
#include <memory>

#include "engine/FloatBehaviour.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {

bool hasFloatTraps(const Image& image);

/// The kernel of a step that has traps, with a look at its operands before each run and at its
/// results after it: a NaN that no operand brought is an invalid operation; an infinity that none
/// brought is a division by zero where the step divides and has a zero, else an overflow. Of
/// elementwise steps element by element. Throws application_runtime_error, which names the step.
/// Kernels that compute nothing are given back as they are.
std::unique_ptr<Kernel> withFloatTraps(std::unique_ptr<Kernel> kernel, const StepDesc& step,
                                       const DebugEntry& debug);

}  // namespace ipujax::engine
