#pragma once
#include <iosfwd>

namespace popops {

/// The order a sorted result is wanted in.
enum class SortOrder { NONE, ASCENDING, DESCENDING };

std::ostream& operator<<(std::ostream& os, const SortOrder& order);

}  // namespace popops
