#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// params[i, indices[i]] -= 1, as the gradient of selectScalarFromRows needs: a row whose index is
/// outside becomes NaN, and one whose index is MASKED_LABEL_CODE stays. params: [n, columns] of
/// FLOAT or HALF; indices: [n] UNSIGNED_INT.
void updateScalarInRows(poplar::Graph& graph, const poplar::Tensor& params,
                        const poplar::Tensor& indices, poplar::program::Sequence& program,
                        const poplar::DebugContext& debugContext = {});

}  // namespace popops
