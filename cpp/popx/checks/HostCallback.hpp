#pragma once
#include <string>
#include <vector>

#include "popx/HostCallback.hpp"

/// For the library: the checks of popx::hostCallback.
namespace popx::callback {

/// Throws unless each operand has the type of its dtype.
void check(const std::vector<poplar::Tensor>& operands, const std::vector<std::string>& dtypes);

}  // namespace popx::callback
