#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popops {

/// B-splines over a grid: for each edge the coefficients `basis` [edges, (degree + 1)^dims] and the
/// indices of their weights `weightIndex`, of that shape. pseudo: coordinates [edges, dims] in
/// [0, 1], FLOAT or HALF; kernelSize: [dims] INT; isOpenSpline: [dims] UNSIGNED_CHAR; degree: 1 to
/// 3. Throws poplibs_error for other types and shapes.
void splineBasis(poplar::Graph& graph, const poplar::Tensor& pseudo,
                 const poplar::Tensor& kernelSize, const poplar::Tensor& isOpenSpline,
                 const poplar::Tensor& basis, const poplar::Tensor& weightIndex, unsigned degree,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

}  // namespace popops
