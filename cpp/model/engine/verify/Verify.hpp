#pragma once
#include "engine/image/Image.hpp"

namespace ipujax::engine {

/// Refuses, with ImageError, an image that kernels or sessions could not run without reading or
/// writing memory that is not theirs: an executable is data that anyone may have written
/// (docs/decisions/0019). Takes time linear in the image.
void verify(const Image& image);

}  // namespace ipujax::engine
