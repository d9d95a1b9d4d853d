#pragma once
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {

/// The kernel of a kRepeat or kRepeatWhile node, or null where it is better walked.
std::unique_ptr<const LoopKernel> makeLoop(const Image& image, std::uint32_t node,
                                           StepKernels kernels);

}  // namespace ipujax::engine::loop
