#pragma once
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popx/Expr.hpp"

namespace popx {

/// Reduces several tensors of one shape together over `dims`, as XLA's reduce does. `body` has one
/// expression per tensor: placeholders 1..k are the accumulators (the earlier elements), k+1..2k
/// the new values; it must be associative. Each init (a scalar) is applied once, first. Returns
/// one tensor per input, with the dimensions that are kept. On hardware: popops::map of the
/// body over neighbours, until one is left.
std::vector<poplar::Tensor> reduce(poplar::Graph& graph, const std::vector<poplar::Tensor>& ins,
                                   const std::vector<poplar::Tensor>& inits,
                                   const std::vector<expr::Expr>& body,
                                   const std::vector<std::size_t>& dims,
                                   poplar::program::Sequence& prog,
                                   const poplar::DebugContext& debugContext = {});

}  // namespace popx
