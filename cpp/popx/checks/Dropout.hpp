#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"

/// For the library: the checks of popx::dropoutBlock.
namespace popx::dropout {

/// Throws if the operands do not match.
void check(const poplar::Tensor& seed, const poplar::Tensor& input, const poplar::Tensor& starts,
           const std::vector<std::size_t>& maskShape, double keepProbability);

}  // namespace popx::dropout
