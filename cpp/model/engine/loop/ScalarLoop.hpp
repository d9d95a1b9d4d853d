#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {

/// The loop at a node as threaded code: what it does with few elements is taken apart into
/// operations on single ones, other steps run as the kernels that they have. In the order of the
/// steps, on their memory. Null where the loop holds what only the walker can run, or little would
/// be gained.
std::unique_ptr<const LoopKernel> makeScalarLoop(const Image& image, std::uint32_t node,
                                                 StepKernels kernels);

}  // namespace ipujax::engine::loop
