#include "popx/checks/Sort.hpp"

#include <string>

#include "poplar/exceptions.hpp"

namespace popx::sorting {
namespace {

[[noreturn]] void refuse(const std::string& needs, const std::string& got, const std::string& fix) {
  throw poplar::poplar_error("[popx::sort] needs " + needs + "; got " + got + ". " + fix);
}

}  // namespace

void check(const std::vector<poplar::Tensor>& operands, unsigned dim) {
  if (operands.empty()) refuse("an operand", "none", "Pass what is to be sorted.");
  for (const auto& t : operands) {
    if (t.shape() != operands[0].shape())
      refuse("operands of one shape", t.shapeToString() + " and " + operands[0].shapeToString(),
             "Broadcast them.");
  }
  if (dim >= operands[0].rank())
    refuse("a dimension below " + std::to_string(operands[0].rank()), std::to_string(dim),
           "Sort along an existing one.");
}

void check(const std::vector<poplar::Tensor>& operands, unsigned dim,
           const std::vector<SortKey>& keys) {
  check(operands, dim);
  if (keys.empty()) refuse("at least one key", "none", "Name an operand to sort by.");
  for (const auto& key : keys) {
    if (key.operand >= operands.size())
      refuse("keys among its operands", std::to_string(key.operand), "Count from 0.");
  }
}

}  // namespace popx::sorting
