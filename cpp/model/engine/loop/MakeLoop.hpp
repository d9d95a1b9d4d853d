#pragma once
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {

/// The kernel of a kRepeat or kRepeatWhile node, or null if it is better to walk it.
std::unique_ptr<const LoopKernel> makeLoop(const Image& image, std::uint32_t node,
                                           StepKernels kernels);

}  // namespace ipujax::engine::loop
