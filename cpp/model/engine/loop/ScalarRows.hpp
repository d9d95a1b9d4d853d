#pragma once
#include <cstdint>

#include "engine/image/Image.hpp"
#include "engine/loop/ScalarCode.hpp"

namespace ipujax::engine::loop {

/// Adds the copy of a row that indices choose, of a few elements or of one piece. False, with
/// nothing added, if the step's kernel is faster or the only way.
bool addRowLoad(const Image& image, std::uint64_t step, ScalarCode& code);
bool addRowStore(const Image& image, std::uint64_t step, ScalarCode& code);

}  // namespace ipujax::engine::loop
