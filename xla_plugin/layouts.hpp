#pragma once
#include <cstddef>

#include "pjrt_abi.hpp"

namespace ipujax::plugin::layouts {

/// The layout of all arrays of a rank, row-major. Valid as long as the process; thread-safe.
PJRT_Layouts_MemoryLayout* ofRank(std::size_t rank);

/// The Layouts extension, to be chained into the API: what jaxlib shows as the layouts of arrays
/// and programs. Without it, programs on one device would have none.
PJRT_Extension_Base* extension(PJRT_Extension_Base* next);

}  // namespace ipujax::plugin::layouts
