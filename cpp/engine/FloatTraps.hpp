#pragma once
#include <cstdint>
#include <memory>

#include "engine/Image.hpp"
#include "engine/Kernel.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// Attribute of a step: the sum of the exceptions below that end a run.
constexpr const char* kFloatTraps = "float_traps";
enum FloatTrap : std::uint8_t { kTrapInvalid = 1, kTrapDivideByZero = 2, kTrapOverflow = 4 };
std::int64_t maskOf(const FloatTraps& traps);
bool hasFloatTraps(const Image& image);

/// The kernel of a step that has traps, with a look at its operands before each run and at its
/// results after it: a NaN that no operand brought is an invalid operation; an infinity that none
/// brought is a division by zero where the step divides and has a zero, else an overflow. Of
/// elementwise steps element by element. Throws application_runtime_error, which names the step.
/// Kernels that compute nothing are given back as they are.
std::unique_ptr<Kernel> withFloatTraps(std::unique_ptr<Kernel> kernel, const StepDesc& step,
                                       const DebugEntry& debug);

}  // namespace ipujax::engine
