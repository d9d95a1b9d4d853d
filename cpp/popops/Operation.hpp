#pragma once
#include <iosfwd>

namespace popops {

/// How a reduction combines two values.
enum class Operation {
  ADD,
  MUL,
  MIN,
  MAX,
  LOGICAL_AND,  ///< BOOL only
  LOGICAL_OR,   ///< BOOL only
  SQUARE_ADD,   ///< the squares are added
  LOG_ADD,      ///< log(exp(a) + exp(b)), without overflow
};

std::ostream& operator<<(std::ostream& os, const Operation& op);

}  // namespace popops
