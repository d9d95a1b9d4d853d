#pragma once
#include "engine/kernels/PoolGradient.hpp"

namespace popnn {

using ipujax::engine::PoolingType;

}  // namespace popnn
