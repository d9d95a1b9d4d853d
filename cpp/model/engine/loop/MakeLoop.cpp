#include "engine/loop/MakeLoop.hpp"

#include "engine/loop/ComposedLoop.hpp"
#include "engine/loop/ScalarLoop.hpp"

namespace ipujax::engine::loop {

std::unique_ptr<const LoopKernel> makeLoop(const Image& image, std::uint32_t node,
                                           StepKernels kernels) {
  if (auto composed = makeComposedLoop(image, node)) return composed;
  return makeScalarLoop(image, node, kernels);
}

}  // namespace ipujax::engine::loop
