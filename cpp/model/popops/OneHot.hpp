#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// encoded[i, j] = 1 where j = indices[i], else 0. A row whose index is MASKED_LABEL_CODE (all bits
/// set), or outside the row, is all 0. indices: [n] of an integer type; encoded: [n, classes].
void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices,
                  const poplar::Tensor& encoded, poplar::program::Sequence& prog,
                  const poplar::DebugContext& debugContext = {});
/// The same with the values of the one-element tensors `on` and `off`, of encoded's type.
void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices,
                  const poplar::Tensor& encoded, poplar::program::Sequence& prog,
                  const poplar::Tensor& on, const poplar::Tensor& off,
                  const poplar::DebugContext& debugContext = {});

}  // namespace popops
