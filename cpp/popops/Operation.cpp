#include "popops/Operation.hpp"

#include <ostream>

#include "popops/OperationDefUtil.hpp"

namespace popops {

std::ostream& operator<<(std::ostream& os, const Operation& op) {
  static const char* const names[] = {"ADD",        "MUL", "MIN",        "MAX",    "LOGICAL_AND",
                                      "LOGICAL_OR", "XOR", "SQUARE_ADD", "LOG_ADD"};
  return os << names[static_cast<int>(op)];
}

}  // namespace popops

const char* poputil::asString(const popops::Operation& op) {
  static const char* const names[] = {"Add",        "Mul", "Min",        "Max",    "Logical And",
                                      "Logical Or", "Xor", "Square Add", "Log Add"};
  return names[static_cast<int>(op)];
}
