#pragma once
#include <cstdint>

#include "engine/image/Image.hpp"
#include "engine/loop/ScalarCode.hpp"

namespace ipujax::engine::loop {

/// Adds an elementwise step to the code, element by element. False, with nothing added, if its
/// kernel is faster or the only way.
bool addMap(const Image& image, std::uint64_t step, ScalarCode& code);

}  // namespace ipujax::engine::loop
