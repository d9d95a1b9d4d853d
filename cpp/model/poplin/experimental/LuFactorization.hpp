#pragma once
#include <utility>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace poplin::experimental {

/// L [M, M] with ones on the diagonal and U [M, N] with L U = the input [M, N], without pivoting: a
/// zero on the diagonal gives infinities and NaN. FLOAT, or HALF, which is computed in FLOAT.
std::pair<poplar::Tensor, poplar::Tensor> LUFactorization(
    poplar::Graph& graph, poplar::Tensor& input, poplar::program::Sequence& seq,
    const poplar::DebugContext& debugContext = {});

}  // namespace poplin::experimental
