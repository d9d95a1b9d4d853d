#pragma once
#include <cstddef>

#include "poplar/ArrayRef.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// An image [..., 3] of UNSIGNED_CHAR, HALF or FLOAT, each pixel on one tile.
poplar::Tensor createNormaliseImageInput(poplar::Graph& graph, const poplar::Type& type,
                                         poplar::ArrayRef<std::size_t> shape,
                                         const poplar::DebugContext& debugContext = {});

/// [..., 4]: (tIn[c] * inScale - offsets[c]) * scales[c], and a fourth channel of zeros. The result
/// has tIn's type, or HALF for UNSIGNED_CHAR; offsets and scales are [3] of the result's type.
poplar::Tensor normaliseImage(poplar::Graph& graph, poplar::program::Sequence& seq,
                              poplar::Tensor tIn, float inScale, poplar::Tensor offsets,
                              poplar::Tensor scales, const poplar::DebugContext& debugContext = {});

}  // namespace popops
