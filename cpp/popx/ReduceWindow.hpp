#pragma once
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popx/Expr.hpp"
#include "popx/Window.hpp"

namespace popx {

/// XLA's reduce_window: every output folds the elements under its window, in row-major order,
/// starting from `inits`; padding and the gaps of base dilation hold the initial value. `body` as
/// for popx::reduce; it must be associative. Returns one tensor per input. On hardware: popops::map
/// of the body over ever larger parts of the windows, dimension by dimension.
std::vector<poplar::Tensor> reduceWindow(poplar::Graph& graph,
                                         const std::vector<poplar::Tensor>& ins,
                                         const std::vector<poplar::Tensor>& inits,
                                         const std::vector<expr::Expr>& body, const Window& window,
                                         poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext = {});

}  // namespace popx
