#pragma once
#include <span>

#include "engine/image/Image.hpp"
#include "engine/image/Overlap.hpp"

namespace ipujax::engine {

/// Refuses, with ImageError, a step that its kernel does not declare to run, and one whose written
/// operands overlap more than the kernel allows. For images, and for kernels that run steps of
/// their own.
void verifyStep(const StepDesc& step, const Image& image, std::span<const Footprint> footprints);

}  // namespace ipujax::engine
