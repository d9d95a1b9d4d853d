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

/// Writes the converted elements of `src` to `dst`, which has the same shape.
void castWithOutput(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// The same in a compute set of the caller's.
void cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
          poplar::ComputeSet cs);
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::ComputeSet cs, const poplar::DebugContext& debugContext = {});
/// To quarters with the metadata given, which other types ignore; to nearest even. Integers and
/// quarters of another format are cast by way of FLOAT.
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    const poplar::Tensor& metadata, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext = {});
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    const poplar::Tensor& metadata, poplar::ComputeSet cs,
                    const poplar::DebugContext& debugContext = {});

/// Whether `input`, one element of FLOAT, is within `tolerance` (relative) of itself when cast to
/// HALF and back: a BOOL scalar. Throws poplibs_error for other types and sizes.
poplar::Tensor checkAccuracyWhenCast(poplar::Graph& graph, const poplar::Tensor& input,
                                     poplar::Type outputType, double tolerance,
                                     poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext = {});

}  // namespace popops
