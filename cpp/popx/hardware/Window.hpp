#pragma once
#include <cstddef>

#include "popx/Window.hpp"

/// For the library.
namespace popx::windows {

/// Throws if the lengths differ from `rank` or a number is invalid.
void check(const char* where, const Window& window, std::size_t rank);

}  // namespace popx::windows
