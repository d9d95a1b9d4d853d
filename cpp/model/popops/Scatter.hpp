#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Writes windows of `updates` into `operand`, in place, at the start indices: XLA's scatter
/// without batching dimensions; see popx::scatter, which also takes update computations.
void scatter(poplar::Graph& graph, const poplar::Tensor& operand, const poplar::Tensor& indices,
             const poplar::Tensor& updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext = {},
             const poplar::OptionFlags& optionFlags = {});

/// Combines a window of the operand (first) with an update (second) of the same shape; returns the
/// window's replacement.
using UpdateComputationFunc = std::function<poplar::Tensor(
    poplar::Graph&, poplar::Tensor&, poplar::Tensor&, poplar::program::Sequence&)>;

/// The same, but each window becomes updateComputation(window, update), one after another in a
/// loop. Windows that do not lie inside the operand are left unchanged.
void scatter(poplar::Graph& graph, const poplar::Tensor& operand, const poplar::Tensor& indices,
             const poplar::Tensor& updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims,
             UpdateComputationFunc& updateComputation, poplar::program::Sequence& prog,
             const poplar::DebugContext& debugContext = {},
             const poplar::OptionFlags& optionFlags = {});

}  // namespace popops
