#pragma once
#include <memory>
#include <string>

#include "poplar/exceptions.hpp"

namespace poplar::internal {

/// The object that a handle holds. Throws poplar_error if it was moved from or is empty.
template <class Pointer>
auto& held(const Pointer& pointer, const char* what) {
  if (pointer) return *pointer;
  throw poplar_error(std::string("[") + what + "] needs what it was made with; got one that was " +
                     "moved from, or is empty. Use the one that it was moved to.");
}

}  // namespace poplar::internal
