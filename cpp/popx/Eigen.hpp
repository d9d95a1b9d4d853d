#pragma once
#include "popx/Parts.hpp"

namespace popx {

/// Eigenvectors (columns) and eigenvalues, ascending, of each Hermitian A [..., n, n], of which one
/// triangle is read: {vectors [..., n, n], values [..., n], status [...]}. The status is 0, or
/// nonzero if there are none (a NaN, no convergence). The model counts: reduction to tridiagonal
/// form in n dependent steps, divide and conquer, and back-transformation.
std::vector<Parts> eigh(Graph& graph, const Parts& a, bool lower, Sequence& prog,
                        const DebugContext& debugContext = {});

/// A Hermitian matrix in tridiagonal form: {reflectors and the two diagonals [..., n, n],
/// diagonal [..., n], off-diagonal [..., n - 1], tau [..., n - 1], status}.
std::vector<Parts> tridiagonal(Graph& graph, const Parts& a, bool lower, Sequence& prog,
                               const DebugContext& debugContext = {});

/// Eigenvalues of any A [..., n, n] and, if asked for, its left and right eigenvectors, of
/// length 1 with a real largest component: {values, left, right, status}, all but the status
/// complex; vectors not asked for are zeros. The model counts: Hessenberg form, QR iteration,
/// back-substitution.
std::vector<Parts> eig(Graph& graph, const Parts& a, bool left, bool right, Sequence& prog,
                       const DebugContext& debugContext = {});

/// A = Q T Q^H: {T, Q, eigenvalues (complex), status}, T triangular (real A: with 2 x 2 blocks); Q
/// is zeros unless asked for.
std::vector<Parts> schur(Graph& graph, const Parts& a, bool vectors, Sequence& prog,
                         const DebugContext& debugContext = {});

/// Hessenberg form: {H over the reflectors [..., n, n], tau [..., n - 1], status}.
std::vector<Parts> hessenberg(Graph& graph, const Parts& a, Sequence& prog,
                              const DebugContext& debugContext = {});

}  // namespace popx
