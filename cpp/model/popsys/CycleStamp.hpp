#pragma once
#include "poplar/CycleCount.hpp"

namespace popsys {

using poplar::cycleStamp;

}  // namespace popsys
