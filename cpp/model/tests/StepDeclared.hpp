#pragma once
#include <cstdint>

#include "engine/image/Image.hpp"
#include "engine/image/StepCheck.hpp"
#include "engine/kernels/Kernel.hpp"

namespace check {

/// The loader's check of a step before its kernel is made: throws if the step does not have what
/// its kernel declares to need.
inline void declared(const ipujax::engine::StepDesc& step, std::uint32_t num_replicas = 1) {
  ipujax::engine::Image image;
  image.signature.num_replicas = num_replicas;
  ipujax::engine::StepCheck check(step, image);
  ipujax::engine::KernelRegistry::instance().check(check);
}

}  // namespace check
