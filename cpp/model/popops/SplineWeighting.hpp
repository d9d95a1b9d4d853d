#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popops {

/// out[e, o] = sum over s and i of basis[e, s] * weight[weightIndex[e, s], i, o] * input[e, i],
/// with basis and weightIndex as splineBasis gives them. input: [edges, in] FLOAT or HALF; weight:
/// [kernel, in, out] and basis [edges, splines] of its type; weightIndex: INT. Throws poplibs_error
/// for other types and shapes.
poplar::Tensor splineWeighting(poplar::Graph& graph, const poplar::Tensor& input,
                               const poplar::Tensor& weight, const poplar::Tensor& basis,
                               const poplar::Tensor& weightIndex, poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext = {});

}  // namespace popops
