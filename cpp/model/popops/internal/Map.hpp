#pragma once
#include <functional>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"

namespace popops::internal {

/// The shape that tensors broadcast to by numpy's rules. Throws poplibs_error if they do not.
std::vector<std::size_t> broadcastShape(const std::vector<poplar::Tensor>& ts);

/// Applies several expressions to the elements of tensors in one step. Tensors are broadcast to a
/// common shape by numpy's rules; `_1` is ts[0]. Result j has the type of exprs[j] and the tile
/// mapping of the first tensor that has the common shape. On hardware: one popops::map for each
/// expression, in one compute set. `generated`: a separate vertex even for one operation.
std::vector<poplar::Tensor> map(poplar::Graph& graph, const std::vector<popops::expr::Expr>& exprs,
                                const std::vector<poplar::Tensor>& ts,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {},
                                bool generated = false);

/// The same into existing tensors, each of the common shape and of its expression's type. An output
/// may be one of `ts`, the same view; any other overlap goes through a temporary. `cycles` gives
/// the tile cycles for n elements of a tile if the work has a dedicated vertex.
void mapWithOutputs(poplar::Graph& graph, const std::vector<popops::expr::Expr>& exprs,
                    const std::vector<poplar::Tensor>& ts,
                    const std::vector<poplar::Tensor>& outputs, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext = {},
                    const std::function<double(std::uint64_t)>& cycles = {},
                    bool generated = false);

}  // namespace popops::internal
