#pragma once
#include <iosfwd>

#include "popops/OperationDef.hpp"

namespace popops {

std::ostream& operator<<(std::ostream& os, const Operation& op);

}  // namespace popops
