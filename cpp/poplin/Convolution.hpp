#pragma once
#include <iosfwd>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "poplin/ConvParams.hpp"
#include "poplin/ConvUtil.hpp"
#include "poplin/PlanningCache.hpp"

namespace poplin {

/// Weights [G, Co, Ci, kernel...] and input [N, G*Ci, field...] of a convolution: row-major
/// variables, mapped as its plan wants its operands.
poplar::Tensor createWeights(poplar::Graph& graph, const ConvParams& params,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);
poplar::Tensor createInput(poplar::Graph& graph, const ConvParams& params,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// in [N, G*Ci, field...], weights [G, Co, Ci, kernel...] -> [N, G*Co, output field...]. With
/// transposeAndFlipWeights the weights are those of the forward pass, [G, Ci, Co, kernel...] in
/// this call's terms. The result is a view; its memory follows the input's order of dimensions.
poplar::Tensor convolution(poplar::Graph& graph, const poplar::Tensor& in,
                           const poplar::Tensor& weights, const ConvParams& params,
                           bool transposeAndFlipWeights, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// The gradient [G, Co, Ci, kernel...] of the weights of the convolution `params`.
poplar::Tensor calculateWeightDeltas(poplar::Graph& graph, const poplar::Tensor& zDeltas,
                                     const poplar::Tensor& activations, const ConvParams& params,
                                     poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {},
                                     PlanningCache* cache = nullptr);

void reportPlanInfo(std::ostream& out, const poplar::Graph& graph, const ConvParams& params,
                    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

}  // namespace poplin
