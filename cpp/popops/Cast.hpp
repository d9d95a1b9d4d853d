#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// A tensor of the same shape and mapping with the elements converted to `dstType`. To an integer:
/// truncates, saturates, NaN gives 0.
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// A program that writes the converted elements of `src` to `dst`.
poplar::program::Program cast(poplar::Graph& graph, const poplar::Tensor& src,
                              const poplar::Tensor& dst,
                              const poplar::DebugContext& debugContext = {});

}  // namespace popops
