#pragma once
#include "engine/kernels/collectives/CollectiveOperator.hpp"

namespace gcl {

using ipujax::engine::collective::CollectiveOperator;

}  // namespace gcl
