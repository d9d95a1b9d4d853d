#pragma once
#include <vector>

#include "engine/Cost.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popnn::internal {

using ipujax::engine::Window;

/// One tensor with a named reducer. `init` may be invalid: the identity.
/// `average`: the result is divided by the number of elements (not padding) under each window.
void reduceWindowNamed(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                       const poplar::Tensor& init, ipujax::engine::reduction::Reducer reducer,
                       bool average, const Window& window, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext);

/// The output's shape.
std::vector<std::size_t> windowOutputShape(const poplar::Tensor& in, const Window& window);

/// Cost of `taps` values a window at `cycles_per_tap` per 64-bit vector; poplibs
/// popnnCycleEstimators.cpp (pooling).
ipujax::engine::Cost windowCost(const poplar::Graph& graph, const poplar::Tensor& in,
                                const poplar::Tensor& out, const Window& window,
                                double cycles_per_tap);

/// The same, or that of a scan if every window reaches the start (or the end) of its dimension.
ipujax::engine::Cost windowOrScanCost(const poplar::Graph& graph, const poplar::Tensor& in,
                                      const poplar::Tensor& out, const Window& window,
                                      double cycles_per_tap, double cycles_per_scanned);

}  // namespace popnn::internal
