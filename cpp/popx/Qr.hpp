#pragma once
#include "popx/Parts.hpp"

namespace popx {

/// Householder QR of each matrix A [..., m, n]: {factors [..., m, n], tau [..., min(m, n)]}. R
/// is in the upper triangle, the reflectors below it. The model counts: min(m, n) dependent steps,
/// each a reflector broadcast and applied to the remaining columns.
std::vector<Parts> qr(Graph& graph, const Parts& a, Sequence& prog,
                      const DebugContext& debugContext = {});

/// The same with column pivoting: {factors, columns [..., n] counted from 1, tau}. A column whose
/// entry in `columns` is not 0 is moved to the front.
std::vector<Parts> qrWithPivots(Graph& graph, const Parts& a, const poplar::Tensor& columns,
                                Sequence& prog, const DebugContext& debugContext = {});

/// The first n columns of H_1 H_2 ... H_k from the reflectors in factors [..., m, n], tau [..., k].
Parts householderProduct(Graph& graph, const Parts& factors, const Parts& tau, Sequence& prog,
                         const DebugContext& debugContext = {});

/// Q C or C Q, with Q^H for `adjoint`, without forming Q.
Parts householderMultiply(Graph& graph, const Parts& factors, const Parts& tau, const Parts& c,
                          bool left, bool adjoint, Sequence& prog,
                          const DebugContext& debugContext = {});

}  // namespace popx
