#pragma once
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popx/Expr.hpp"

/// For the library: the body of a reduction, applied to whole tensors.
namespace popx::fold {

/// Throws if the tensors do not match or the body has another number of expressions.
void check(const char* where, const std::vector<poplar::Tensor>& ins,
           const std::vector<poplar::Tensor>& inits, const std::vector<expr::Expr>& body);

/// Applies the body to earlier and later elements; scalars are broadcast.
std::vector<poplar::Tensor> combine(poplar::Graph& graph,
                                    const std::vector<poplar::Tensor>& earlier,
                                    const std::vector<poplar::Tensor>& later,
                                    const std::vector<expr::Expr>& body,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext);

}  // namespace popx::fold
