#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// out[i] = params[i, indices[i]]; NaN where the index is outside the row, and 0 where it is
/// MASKED_LABEL_CODE (all bits set). params: [n, columns] FLOAT or HALF; indices: [n] UNSIGNED_INT
/// (or INT).
poplar::Tensor selectScalarFromRows(poplar::Graph& graph, const poplar::Tensor& params,
                                    const poplar::Tensor& indices, poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext = {});

}  // namespace popops
