#include "popops/Operation.hpp"

#include <algorithm>
#include <istream>
#include <iterator>
#include <ostream>
#include <string>

#include "popops/OperationDefUtil.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

const char* const kNames[] = {"ADD",        "MUL", "MIN",        "MAX",    "LOGICAL_AND",
                              "LOGICAL_OR", "XOR", "SQUARE_ADD", "LOG_ADD"};

}  // namespace

std::ostream& operator<<(std::ostream& os, const Operation& op) {
  return os << kNames[static_cast<int>(op)];
}

std::istream& operator>>(std::istream& is, Operation& op) {
  std::string word;
  is >> word;
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), word);
  if (found == std::end(kNames))
    throw poputil::poplibs_error("[popops::Operation] needs the name of an operation; got '" +
                                 word + "'. Use ADD, MUL, MIN, MAX or another enumerator.");
  op = static_cast<Operation>(found - std::begin(kNames));
  return is;
}

}  // namespace popops

const char* poputil::asString(const popops::Operation& op) {
  static const char* const names[] = {"Add",        "Mul", "Min",        "Max",    "Logical And",
                                      "Logical Or", "Xor", "Square Add", "Log Add"};
  return names[static_cast<int>(op)];
}
