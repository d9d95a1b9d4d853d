#pragma once
#include <utility>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popnn/NonLinearity.hpp"

namespace popnn {

/// The centres of the activations of `fields` [F][H][W]: [F][2], the means of y and x,
/// both from -1 to 1, weighted by the softmax of fields / temperature over all fields together; or
/// by fields / temperature itself if disableSoftmax. The second tensor is the temperature, a
/// scalar variable with the initial value given, for training.
std::pair<poplar::Tensor, poplar::Tensor> spatialSoftMax2D(
    poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& fields,
    float temperature, bool disableSoftmax = false, const poplar::DebugContext& debugContext = {});

}  // namespace popnn
