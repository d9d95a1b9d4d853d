#pragma once
#include "poplar/exceptions.hpp"

namespace poputil {

/// What PopLibs functions throw where poplar itself does not.
struct poplibs_error : poplar::poplar_error {
  using poplar_error::poplar_error;
};

}  // namespace poputil
