#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pjrt_abi.hpp"

namespace ipujax::plugin::layouts {

/// Returns a layout that stays valid as long as the process. Thread-safe.
PJRT_Layouts_MemoryLayout* of(const std::vector<std::int64_t>& minor_to_major);

/// The row-major layout of arrays of this rank, which is their default.
PJRT_Layouts_MemoryLayout* ofRank(std::size_t rank);

/// The Layouts extension, to be chained into the API: what jaxlib shows as the layouts of arrays
/// and programs. Without it, programs on one device would have none.
PJRT_Extension_Base* extension(PJRT_Extension_Base* next);

}  // namespace ipujax::plugin::layouts
