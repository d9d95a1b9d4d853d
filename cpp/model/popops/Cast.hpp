#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Converts the elements to `dstType`, in a tensor of the same shape and mapping. Conversion to an
/// integer truncates and saturates; NaN becomes 0.
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// A program that writes the converted elements of `src` to `dst`.
poplar::program::Program cast(poplar::Graph& graph, const poplar::Tensor& src,
                              const poplar::Tensor& dst,
                              const poplar::DebugContext& debugContext = {});

/// Writes the converted elements of `src` to `dst`, which has the same shape.
void castWithOutput(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// The same in the caller's compute set.
void cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
          poplar::ComputeSet cs);
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    poplar::ComputeSet cs, const poplar::DebugContext& debugContext = {});
/// Casts to quarters with the given metadata, rounding to nearest even; other types ignore the
/// metadata. Integers and quarters of another format are cast via FLOAT.
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    const poplar::Tensor& metadata, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext = {});
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& dstType,
                    const poplar::Tensor& metadata, poplar::ComputeSet cs,
                    const poplar::DebugContext& debugContext = {});

/// Returns a BOOL scalar: whether casting `input`, a single FLOAT, to HALF and back changes it by
/// at most `tolerance` (relative). Throws poplibs_error for other types and sizes.
poplar::Tensor checkAccuracyWhenCast(poplar::Graph& graph, const poplar::Tensor& input,
                                     poplar::Type outputType, double tolerance,
                                     poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext = {});

}  // namespace popops
