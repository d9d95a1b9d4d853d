#pragma once
#include <iosfwd>

#include "popops/OperationDef.hpp"

namespace popops {

std::ostream& operator<<(std::ostream& os, const Operation& op);
/// Reads a name that operator<< writes; throws poputil::poplibs_error for any other word.
std::istream& operator>>(std::istream& is, Operation& op);

}  // namespace popops
