#pragma once
#include "engine/kernels/CollectiveOperator.hpp"

namespace gcl {

using ipujax::engine::collective::CollectiveOperator;

}  // namespace gcl
