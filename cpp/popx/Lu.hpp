#pragma once
#include "popx/Parts.hpp"

namespace popx {

/// LU of each matrix A [..., m, n] with partial pivoting: {L and U in one [..., m, n], the row that
/// each row was swapped with [..., min(m, n)] counted from 1, status [...]}. A singular matrix
/// gives factors with a zero on the diagonal and a status above 0. The model counts: min(m, n)
/// dependent steps, each a maximum over a column, a swap, and a rank-one update.
std::vector<Parts> lu(Graph& graph, const Parts& a, Sequence& prog,
                      const DebugContext& debugContext = {});

/// The order [..., size] of `size` rows after the swaps [..., k], counted from 0, one after
/// another.
poplar::Tensor permutationOfPivots(Graph& graph, const poplar::Tensor& pivots, std::size_t size,
                                   Sequence& prog, const DebugContext& debugContext = {});

}  // namespace popx
