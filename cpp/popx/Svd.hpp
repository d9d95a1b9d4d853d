#pragma once
#include "popx/Parts.hpp"

namespace popx {

/// Singular values [..., k] of each A [..., m, n], k = min(m, n), largest first, and the vectors:
/// {values, U, V^H, status}. U is [..., m, k] and V^H [..., k, n], or square if `full`; they are
/// zeros without `vectors`. The status is 0, or nonzero if there is no result (a NaN, no
/// convergence). `divide`: divide and conquer, else QR iteration. The model counts: reduction to
/// bidiagonal form in dependent steps, then one of the two.
std::vector<Parts> svd(Graph& graph, const Parts& a, bool vectors, bool full, bool divide,
                       Sequence& prog, const DebugContext& debugContext = {});

}  // namespace popx
