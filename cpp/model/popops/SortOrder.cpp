#include "popops/SortOrder.hpp"

#include <ostream>

namespace popops {

std::ostream& operator<<(std::ostream& os, const SortOrder& order) {
  static const char* const names[] = {"NONE", "ASCENDING", "DESCENDING"};
  return os << names[static_cast<int>(order)];
}

}  // namespace popops
