#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popx/Expr.hpp"
#include "popx/ReduceWindow.hpp"

namespace popx {

/// XLA's select_and_scatter, the gradient of max pooling: `select` (placeholders 1, 2) picks one
/// element of every window (the first one stays while select(it, next) holds; padding is never
/// picked), and `scatter` (1 = current value, 2 = the source value) combines the window's source
/// value into that place of the result, which starts as `init` (a scalar) everywhere. Windows are
/// taken in row-major order. `window` has no dilations. On hardware: popnn's max pooling gradient.
poplar::Tensor selectAndScatter(poplar::Graph& graph, const poplar::Tensor& operand,
                                const poplar::Tensor& source, const poplar::Tensor& init,
                                const expr::Expr& select, const expr::Expr& scatter,
                                const Window& window, poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {});

}  // namespace popx
