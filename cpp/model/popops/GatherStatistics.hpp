#pragma once
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Counts elements between ascending levels: [levels + 1]. Entry i counts elements from
/// levels[i - 1] to below levels[i]; the first and last have one bound. NaN counts in the last.
/// UNSIGNED_INT, or FLOAT with the option useFloatArithmetic=true (exact to 2**24).
poplar::Tensor histogram(poplar::Graph& graph, const poplar::Tensor& input,
                         const poplar::Tensor& levels, bool absoluteOfInput,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});
/// The same into `output`, FLOAT or UNSIGNED_INT, or added to it.
void histogram(poplar::Graph& graph, const poplar::Tensor& input, poplar::Tensor& output,
               bool updateOutput, const poplar::Tensor& levels, bool absoluteOfInput,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

}  // namespace popops
