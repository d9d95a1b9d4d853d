#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// dst = src of the same shape, one of them QUARTER and the other one FLOAT or HALF. What is too
/// large becomes NaN where CSRFunctions set `nanoo`, or nothing, else the largest quarter. It costs
/// nothing where it `is_free`: then tiles work with the quarters, and only the model's numbers need
/// it.
void castQuarters(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                  bool is_free = false);

}  // namespace popops::internal
