#include "popops/Operation.hpp"

#include <ostream>

namespace popops {

std::ostream& operator<<(std::ostream& os, const Operation& op) {
  static const char* const names[] = {"ADD",        "MUL", "MIN",        "MAX",    "LOGICAL_AND",
                                      "LOGICAL_OR", "XOR", "SQUARE_ADD", "LOG_ADD"};
  return os << names[static_cast<int>(op)];
}

}  // namespace popops
