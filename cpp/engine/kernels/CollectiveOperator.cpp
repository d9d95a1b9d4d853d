#include "engine/kernels/CollectiveOperator.hpp"

#include <ostream>

namespace ipujax::engine::collective {

std::ostream& operator<<(std::ostream& os, const CollectiveOperator& op) {
  static const char* const names[] = {"ADD",         "MEAN",       "MUL",        "MIN",  "MAX",
                                      "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOCAL"};
  return os << names[static_cast<int>(op)];
}

}  // namespace ipujax::engine::collective
