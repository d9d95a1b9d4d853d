#pragma once
#include <cstdint>
#include <memory>

#include "engine/image/Image.hpp"
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {

/// The loop at a node as expressions of several iterations, whose values stay in registers and in a
/// block of a few lines. Null if the loop is not of this kind, or has only single elements.
std::unique_ptr<const LoopKernel> makeComposedLoop(const Image& image, std::uint32_t node);

}  // namespace ipujax::engine::loop
