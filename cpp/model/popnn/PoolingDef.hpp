#pragma once
#include "engine/kernels/conv/PoolGradient.hpp"

namespace popnn {

using ipujax::engine::PoolingType;

}  // namespace popnn
