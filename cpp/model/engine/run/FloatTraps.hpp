#pragma once
#include <cstdint>
#include <memory>

#include "engine/FloatBehaviour.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {

bool hasFloatTraps(const Image& image);

/// Wraps the kernel of a step with traps to check its operands before each run and its results
/// after it. A NaN that no operand has is an invalid operation; an infinity that none has is a
/// division by zero if the step divides and has a zero, else an overflow. Checks elementwise steps
/// element by element. Throws application_runtime_error, which names the step. Returns kernels that
/// compute nothing unchanged.
std::unique_ptr<Kernel> withFloatTraps(std::unique_ptr<Kernel> kernel, const StepDesc& step,
                                       const DebugEntry& debug);

}  // namespace ipujax::engine
