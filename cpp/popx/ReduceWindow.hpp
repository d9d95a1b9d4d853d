#pragma once
#include <vector>

#include "engine/Cost.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Expr.hpp"
#include "popops/ReduceKernels.hpp"
#include "popx/Window.hpp"

namespace popx {

/// XLA's reduce_window: every output folds the elements under its window, in row-major order,
/// starting from `inits`; padding and the gaps of base dilation hold the initial value. `body` as
/// for popx::reduce; it must be associative. Returns one tensor per input. On hardware: popnn's
/// pooling vertices, or a scan in two stages where the windows are prefixes or suffixes.
std::vector<poplar::Tensor> reduceWindow(poplar::Graph& graph,
                                         const std::vector<poplar::Tensor>& ins,
                                         const std::vector<poplar::Tensor>& inits,
                                         const std::vector<popops::expr::Expr>& body,
                                         const Window& window, poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext = {});

/// For the library: one tensor with a named reducer. `init` may be invalid: the identity.
/// `average`: the result is divided by the number of elements (not padding) under each window.
void reduceWindowNamed(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                       const poplar::Tensor& init, ipujax::engine::reduction::Reducer reducer,
                       bool average, const Window& window, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext);

/// For the library: the output's shape.
std::vector<std::size_t> windowOutputShape(const poplar::Tensor& in, const Window& window);

/// For the library: cost of `taps` values a window at `cycles_per_tap` per 64-bit vector; poplibs
/// popnnCycleEstimators.cpp (pooling).
ipujax::engine::Cost windowCost(const poplar::Graph& graph, const poplar::Tensor& in,
                                const poplar::Tensor& out, const Window& window,
                                double cycles_per_tap);

}  // namespace popx
