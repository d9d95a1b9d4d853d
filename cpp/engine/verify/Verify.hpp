#pragma once
#include "engine/Image.hpp"
#include "engine/verify/Overlap.hpp"

namespace ipujax::engine {

/// Refuses, with ImageError, an image that kernels or sessions could not run without reading or
/// writing what is not theirs: an executable is data, whoever wrote it (docs/decisions/0019). Takes
/// time linear in the image.
void verify(const Image& image);

/// For kernels that run steps of their own: the step's kernel's declaration, and that what it
/// writes overlaps nothing but what the kernel allows.
void verifyStep(const StepDesc& step, const Image& image, std::span<const Footprint> footprints);

}  // namespace ipujax::engine
