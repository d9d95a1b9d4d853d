#include "engine/loop/LoopKernel.hpp"

#include "engine/loop/ComposedLoop.hpp"
#include "engine/loop/ScalarLoop.hpp"

namespace ipujax::engine {

std::unique_ptr<const LoopKernel> LoopKernel::make(const Image& image, std::uint32_t node,
                                                   StepKernels kernels) {
  if (auto composed = loop::makeComposedLoop(image, node)) return composed;
  return loop::makeScalarLoop(image, node, kernels);
}

}  // namespace ipujax::engine
