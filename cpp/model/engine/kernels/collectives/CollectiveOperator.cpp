#include "engine/kernels/collectives/CollectiveOperator.hpp"

#include <istream>
#include <iterator>
#include <ostream>
#include <string>

namespace ipujax::engine::collective {

namespace {
constexpr const char* kNames[] = {"ADD",         "MEAN",       "MUL",        "MIN",  "MAX",
                                  "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOCAL"};
}  // namespace

std::ostream& operator<<(std::ostream& os, const CollectiveOperator& op) {
  return os << kNames[static_cast<int>(op)];
}

std::istream& operator>>(std::istream& is, CollectiveOperator& op) {
  std::string word;
  is >> word;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (word != kNames[i]) continue;
    op = static_cast<CollectiveOperator>(i);
    return is;
  }
  is.setstate(std::ios::failbit);
  return is;
}

}  // namespace ipujax::engine::collective
