#pragma once
#include <iosfwd>

namespace popops {

/// The requested order of a sorted result.
enum class SortOrder { NONE, ASCENDING, DESCENDING };

std::ostream& operator<<(std::ostream& os, const SortOrder& order);

}  // namespace popops
