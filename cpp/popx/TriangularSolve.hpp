#pragma once
#include "popx/Parts.hpp"

namespace popx {

struct TriangularSolveParams {
  bool left_side = true;  ///< op(A) X = B, else X op(A) = B
  bool lower = true;      ///< which triangle of A is read
  bool unit_diagonal = false;
  char transpose = 'N';        ///< op(A): N as it is, T transposed, C transposed and conjugated
  std::size_t block_size = 0;  ///< rows of X that are solved at once; 0: one by one
};

/// X of each triangle A [..., n, n] and B [..., n, m] (or [..., m, n]). A zero on the diagonal
/// gives infinities and NaN. The model counts: n dependent steps, each a row of X broadcast and
/// subtracted; or n / block_size steps of blocks of rows. The block size changes only the cost.
Parts triangularSolve(Graph& graph, const Parts& a, const Parts& b,
                      const TriangularSolveParams& params, Sequence& prog,
                      const DebugContext& debugContext = {});

/// X of each tridiagonal system with partial pivoting: lower, diagonal and upper [..., n] (the
/// first of lower and the last of upper are not used), B [..., n, m]. `perturb` raises tiny pivots
/// so that X stays finite. Also returns a status [...]: 0, or where U is singular.
std::vector<Parts> tridiagonalSolve(Graph& graph, const Parts& lower, const Parts& diagonal,
                                    const Parts& upper, const Parts& b, bool perturb,
                                    Sequence& prog, const DebugContext& debugContext = {});

}  // namespace popx
