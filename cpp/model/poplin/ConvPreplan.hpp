#pragma once
#include <set>

#include "poplin/Convolution.hpp"
#include "poplin/MatMul.hpp"

namespace poplin {

/// Plans convolutions and products before they are added, so that the cache has them.
void preplan(const std::set<ConvPlanParams>& convs, const std::set<MatMulPlanParams>& matmuls,
             PlanningCache& cache);

}  // namespace poplin
