#pragma once
#include "poplar/ArrayRef.hpp"
#include "poplar/Graph.hpp"

namespace popops::internal {

/// Throws poplibs_error for a tensor that is empty or of another graph: `where` is the function.
void needOwn(const poplar::Graph& graph, poplar::ArrayRef<poplar::Tensor> ts, const char* where);

}  // namespace popops::internal
