#pragma once
#include "poplar/exceptions.hpp"

namespace poputil {

/// Errors of PopLibs functions that poplar itself does not throw.
struct poplibs_error : poplar::poplar_error {
  using poplar_error::poplar_error;
};

}  // namespace poputil
