#pragma once
#include "popx/Parts.hpp"

namespace popx {

/// The triangle L (`lower`) with L L^H = A, or U with U^H U = A, of each matrix A [..., n, n]; only
/// that triangle of A is read and the other one of the result is zero. A matrix that is not
/// positive definite gives NaN. The model counts: n rank-one updates, the column broadcast before
/// each; with a block size, n / block_size updates by block_size columns, each with its own code,
/// whose block on the diagonal one tile factorises. The block size changes only the cost.
Parts cholesky(Graph& graph, const Parts& a, bool lower, Sequence& prog,
               const DebugContext& debugContext = {}, std::size_t block_size = 0);

}  // namespace popx
