#pragma once
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popx/Expr.hpp"

namespace popx {

/// popops::map of several expressions in one step: result j has the type of exprs[j], and the shape
/// to which all tensors are broadcast. On hardware: one popops::map for each expression.
std::vector<poplar::Tensor> map(poplar::Graph& graph, const std::vector<expr::Expr>& exprs,
                                const std::vector<poplar::Tensor>& ts,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {});

}  // namespace popx
