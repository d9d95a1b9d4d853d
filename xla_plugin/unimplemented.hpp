#pragma once
#include "pjrt_abi.hpp"

namespace ipujax::plugin::unimplemented {

/// Fills every entry with a stub that returns UNIMPLEMENTED under the entry's own name.
void bind(PJRT_Api& api);

}  // namespace ipujax::plugin::unimplemented
