#pragma once
#include "popx/MatrixBatch.hpp"

namespace popx {

/// Eigenvectors (columns) and eigenvalues, ascending, of each Hermitian A [..., n, n], of which one
/// triangle is read: {vectors [..., n, n], values [..., n], status [...]}. The status is 0, or not
/// where there are none (a NaN, no convergence). On hardware: reduction to tridiagonal form in n
/// dependent steps, divide and conquer, and back.
std::vector<Parts> eigh(poplar::Graph& graph, const Parts& a, bool lower,
                        poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext = {});

/// A Hermitian matrix in tridiagonal form: {reflectors and the two diagonals [..., n, n],
/// diagonal [..., n], off-diagonal [..., n - 1], tau [..., n - 1], status}.
std::vector<Parts> tridiagonal(poplar::Graph& graph, const Parts& a, bool lower,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext = {});

/// Eigenvalues of any A [..., n, n] and, where asked for, its left and right eigenvectors, of
/// length 1 with a real largest component: {values, left, right, status}, all but the status
/// complex; vectors not asked for are zeros. On hardware: Hessenberg form, QR iteration,
/// back-substitution.
std::vector<Parts> eig(poplar::Graph& graph, const Parts& a, bool left, bool right,
                       poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});

/// A = Q T Q^H: {T, Q, eigenvalues (complex), status}, T triangular (real A: with 2 x 2 blocks); Q
/// is zeros unless asked for.
std::vector<Parts> schur(poplar::Graph& graph, const Parts& a, bool vectors,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {});

/// Hessenberg form: {H over the reflectors [..., n, n], tau [..., n - 1], status}.
std::vector<Parts> hessenberg(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext = {});

}  // namespace popx
