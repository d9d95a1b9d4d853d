#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// dst = src of the same shape, one of them QUARTER and the other one FLOAT or HALF. Values that
/// are too large become NaN if CSRFunctions set `nanoo`, or set nothing, else the largest quarter.
/// With `is_free` it costs nothing: tiles work with the quarters, and only the model converts.
void castQuarters(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Tensor& dst,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                  bool is_free = false);

}  // namespace popops::internal
