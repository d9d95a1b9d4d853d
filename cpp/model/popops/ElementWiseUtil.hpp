#pragma once
#include <vector>

#include "poplar/Graph.hpp"

namespace popops {

/// A tensor of the inputs' common shape, mapped as the input whose fullest tile has fewest
/// elements. Throws poplibs_error without inputs, or if their shapes differ.
poplar::Tensor createOutputForElementWiseOp(poplar::Graph& graph,
                                            const std::vector<poplar::Tensor>& inputs,
                                            const poplar::Type& outputType,
                                            const poplar::DebugContext& debugContext = {});

}  // namespace popops
