#pragma once
#include <array>
#include <cstddef>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace poplin::experimental {

/// A [m, n] and Q [m, m], spread over all tiles.
std::array<poplar::Tensor, 2> createQRFactorizationMatrices(
    poplar::Graph& graph, const poplar::Type& type, std::size_t m, std::size_t n,
    const poplar::DebugContext& debugContext);

/// Q R = A by Householder reflections, m >= n: R replaces A [m, n], and Q [m, m], which must hold
/// the identity, becomes the orthogonal matrix. The option rowsPerIteration has no effect.
void QRFactorization(poplar::Graph& graph, poplar::Tensor& A, poplar::Tensor& Q,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                     const poplar::OptionFlags& options = {});

}  // namespace poplin::experimental
