#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {

/// The loop at a node as threaded code: steps on few elements become operations on single elements,
/// other steps run their kernels. All run in the order of the steps, on their memory. Null if the
/// loop contains something that only the walker can run, or if little would be gained.
std::unique_ptr<const LoopKernel> makeScalarLoop(const Image& image, std::uint32_t node,
                                                 StepKernels kernels);

}  // namespace ipujax::engine::loop
