#pragma once
#include "popx/MatrixBatch.hpp"

namespace popx {

/// Householder QR of each matrix A [..., m, n]: {factors [..., m, n], tau [..., min(m, n)]}. R
/// stands in the upper triangle, the reflectors below it. On hardware: min(m, n) dependent steps,
/// each a reflector broadcast and applied to the columns that are left.
std::vector<Parts> qr(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});

/// The same with column pivoting: {factors, columns [..., n] counted from 1, tau}. A column whose
/// entry in `columns` is not 0 is moved to the front.
std::vector<Parts> qrWithPivots(poplar::Graph& graph, const Parts& a, const poplar::Tensor& columns,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {});

/// The first n columns of H_1 H_2 ... H_k from the reflectors in factors [..., m, n], tau [..., k].
Parts householderProduct(poplar::Graph& graph, const Parts& factors, const Parts& tau,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {});

/// Q C or C Q, with Q^H for `adjoint`, without making Q.
Parts householderMultiply(poplar::Graph& graph, const Parts& factors, const Parts& tau,
                          const Parts& c, bool left, bool adjoint, poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext = {});

}  // namespace popx
