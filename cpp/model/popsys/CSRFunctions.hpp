#pragma once
#include "poplar/CSRFunctions.hpp"

namespace popsys {

using poplar::FloatingPointBehaviour;
using poplar::setFloatingPointBehaviour;
using poplar::setStochasticRounding;

}  // namespace popsys
