#pragma once
#include "poplar/CycleCount.hpp"

namespace popsys {

using poplar::cycleCount;

}  // namespace popsys
