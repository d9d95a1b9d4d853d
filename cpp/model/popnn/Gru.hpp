#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "poplar/Tensor.hpp"
#include "poplin/MatMul.hpp"
#include "popnn/GruDef.hpp"
#include "popnn/NonLinearityDef.hpp"
#include "popnn/Rnn.hpp"

namespace popnn {
/// GRU layers: with x the input and h the output of the step before,
///
///     r, u = sigmoid(x W + h U + b)          each with weights of its own
///     c = tanh(x W + (r * h) U + b)          or, with resetAfter, tanh(x W + b + r * (h U + b'))
///     h' = u * h + (1 - u) * c
///
/// AUGRU layers use (1 - a) * u instead of u, with the attention a of each step.
///
/// Options: partialsType and availableMemoryProportion are those of the matrix products; others
/// that popnn/Lstm.hpp names are read but have no effect. With variable time steps, a sequence
/// keeps its state after its end, and the outputs there are zero.
namespace gru {

/// Reset gate, update gate, candidate.
const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder();

struct GruParams {
  rnn::RnnParams rnn;

  poplar::Type dataType;                ///< deprecated: rnn.dataType
  std::size_t batchSize;                ///< deprecated: rnn.batchSize
  std::size_t timeSteps;                ///< deprecated: rnn.maxTimeSteps
  std::vector<std::size_t> layerSizes;  ///< deprecated: rnn.layerSizes
  /// Whether the output is that of each step, or of the last one.
  bool outputFullSequence = true;
  bool calcInputGradients = true;
  /// The order of the units in dimension 0 of weights and biases.
  std::vector<BasicGruCellUnit> cellOrder = getDefaultBasicGruCellOrder();
  /// Whether the reset gate is applied after the candidate's weights and biases.
  bool resetAfter = false;
  NonLinearityType activation = NonLinearityType::TANH;
  NonLinearityType recurrentActivation = NonLinearityType::SIGMOID;

  GruParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
            std::vector<std::size_t> layerSizes,
            NonLinearityType activation = NonLinearityType::TANH,
            NonLinearityType recurrentActivation = NonLinearityType::SIGMOID);
  GruParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
            const poplar::Tensor& timeSteps, std::vector<std::size_t> layerSizes,
            NonLinearityType activation = NonLinearityType::TANH,
            NonLinearityType recurrentActivation = NonLinearityType::SIGMOID);
  GruParams(const GruParams& other);
};

/// Floating point operations, those of activations and biases not counted.
std::uint64_t getBasicGruCellFwdFlops(const GruParams& params);
std::uint64_t getBasicGruCellBwdFlops(const GruParams& params);
std::uint64_t getBasicGruCellWuFlops(const GruParams& params);

/// [time steps, batch, input size].
poplar::Tensor createInput(poplar::Graph& graph, const GruParams& params,
                           const poplar::DebugContext& debugContext,
                           const poplar::OptionFlags& options = {},
                           poplin::PlanningCache* planningCache = nullptr);
/// The output before the first step, [batch, output size]; not initialised.
poplar::Tensor createInitialState(poplar::Graph& graph, const GruParams& params,
                                  const poplar::DebugContext& debugContext,
                                  const poplar::OptionFlags& options = {},
                                  poplin::PlanningCache* cache = nullptr);

/// Parameters, or their gradients.
struct GruWeights {
  poplar::Tensor inputWeights;   ///< [3, input size, output size]
  poplar::Tensor outputWeights;  ///< [3, output size, output size]
  poplar::Tensor biases;  ///< [3, output size]; resetAfter: [3, 2 (input, output), output size]
};

/// The input and output weights.
std::pair<poplar::Tensor, poplar::Tensor> createWeightsKernel(
    poplar::Graph& graph, const GruParams& params, const poplar::DebugContext& debugContext,
    const poplar::OptionFlags& options = {}, poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor createWeightsBiases(poplar::Graph& graph, const GruParams& params,
                                   const poplar::DebugContext& debugContext,
                                   const poplar::OptionFlags& options = {},
                                   poplin::PlanningCache* planningCache = nullptr);
GruWeights createWeights(poplar::Graph& graph, const GruParams& params,
                         const poplar::DebugContext& debugContext,
                         const poplar::OptionFlags& options = {},
                         poplin::PlanningCache* planningCache = nullptr);

/// Attention of each step, [batch, time steps].
poplar::Tensor createAttention(poplar::Graph& graph, const GruParams& params,
                               const poplar::DebugContext& debugContext,
                               const poplar::OptionFlags& options = {});

/// Runs the layer. `intermediates`, null for inference, is set to what the backward pass needs.
/// realTimeSteps [batch] replace params.rnn.varTimeSteps.
poplar::Tensor gruFwd(poplar::Graph& graph, const GruParams& params,
                      const poplar::Tensor& stateInit, const poplar::Tensor& in,
                      const GruWeights& weights, poplar::Tensor* intermediates,
                      poplar::program::Sequence& fwdProg,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {},
                      poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor gruFwd(poplar::Graph& graph, const GruParams& params,
                      const poplar::Tensor& stateInit, const poplar::Tensor& in,
                      const poplar::Tensor& realTimeSteps, const GruWeights& weights,
                      poplar::Tensor* intermediates, poplar::program::Sequence& fwdProg,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {},
                      poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor auGruFwd(poplar::Graph& graph, const GruParams& params,
                        const poplar::Tensor& stateInit, const poplar::Tensor& in,
                        const GruWeights& weights, poplar::Tensor* intermediates,
                        const poplar::Tensor& attScores, poplar::program::Sequence& fwdProg,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {},
                        poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor auGruFwd(poplar::Graph& graph, const GruParams& params,
                        const poplar::Tensor& stateInit, const poplar::Tensor& in,
                        const poplar::Tensor& realTimeSteps, const GruWeights& weights,
                        poplar::Tensor* intermediates, const poplar::Tensor& attScores,
                        poplar::program::Sequence& fwdProg,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {},
                        poplin::PlanningCache* planningCache = nullptr);

/// The gradients of the initial state, of the inputs unless inputGrad is null, and of the
/// attention. outputGrad has the output's shape; bwdIntermediates, unless null, is set to what
/// gruWU needs.
poplar::Tensor gruBwd(poplar::Graph& graph, const GruParams& params,
                      poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                      const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                      const poplar::Tensor& input, const poplar::Tensor& output,
                      const poplar::Tensor& outputGrad, poplar::Tensor* inputGrad,
                      poplar::Tensor* bwdIntermediates,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {},
                      poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor gruBwd(poplar::Graph& graph, const GruParams& params,
                      poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                      const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                      const poplar::Tensor& input, const poplar::Tensor& realTimeSteps,
                      const poplar::Tensor& output, const poplar::Tensor& outputGrad,
                      poplar::Tensor* inputGrad, poplar::Tensor* bwdIntermediates,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {},
                      poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor auGruBwd(poplar::Graph& graph, const GruParams& params,
                        poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                        const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                        const poplar::Tensor& input, const poplar::Tensor& output,
                        const poplar::Tensor& outputGrad, poplar::Tensor* inputGrad,
                        poplar::Tensor* bwdIntermediates, const poplar::Tensor& attentions,
                        poplar::Tensor* attentionsGrad,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {},
                        poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor auGruBwd(poplar::Graph& graph, const GruParams& params,
                        poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                        const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                        const poplar::Tensor& input, const poplar::Tensor& realTimeSteps,
                        const poplar::Tensor& output, const poplar::Tensor& outputGrad,
                        poplar::Tensor* inputGrad, poplar::Tensor* bwdIntermediates,
                        const poplar::Tensor& attentions, poplar::Tensor* attentionsGrad,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {},
                        poplin::PlanningCache* planningCache = nullptr);

/// The gradients of the parameters.
GruWeights gruWU(poplar::Graph& graph, const GruParams& params, poplar::program::Sequence& prog,
                 const poplar::Tensor& fwdOutputInit, const poplar::Tensor& fwdIntermediates,
                 const poplar::Tensor& bwdIntermediates, const GruWeights& weights,
                 const poplar::Tensor& input, const poplar::Tensor& output,
                 const poplar::DebugContext& debugContext = {},
                 const poplar::OptionFlags& options = {},
                 poplin::PlanningCache* planningCache = nullptr);
GruWeights auGruWU(poplar::Graph& graph, const GruParams& params, poplar::program::Sequence& prog,
                   const poplar::Tensor& fwdOutputInit, const poplar::Tensor& fwdIntermediates,
                   const poplar::Tensor& bwdIntermediates, const GruWeights& weights,
                   const poplar::Tensor& input, const poplar::Tensor& output,
                   const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {},
                   poplin::PlanningCache* planningCache = nullptr);

/// gruBwd and gruWU, or auGruBwd and auGruWU, in one call.
poplar::Tensor gruBwdWithWU(poplar::Graph& graph, const GruParams& params,
                            poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                            const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                            const poplar::Tensor& input, const poplar::Tensor& output,
                            const poplar::Tensor& outputGrad, poplar::Tensor* inputGrad,
                            GruWeights& weightsGrad, const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {},
                            poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor gruBwdWithWU(poplar::Graph& graph, const GruParams& params,
                            poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                            const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                            const poplar::Tensor& input, const poplar::Tensor& realTimeSteps,
                            const poplar::Tensor& output, const poplar::Tensor& outputGrad,
                            poplar::Tensor* inputGrad, GruWeights& weightsGrad,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {},
                            poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor auGruBwdWithWU(poplar::Graph& graph, const GruParams& params,
                              poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                              const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                              const poplar::Tensor& input, const poplar::Tensor& output,
                              const poplar::Tensor& outputGrad, poplar::Tensor* inputGrad,
                              GruWeights& weightsGrad, const poplar::Tensor& attentions,
                              poplar::Tensor* attentionsGrad,
                              const poplar::DebugContext& debugContext = {},
                              const poplar::OptionFlags& options = {},
                              poplin::PlanningCache* planningCache = nullptr);
poplar::Tensor auGruBwdWithWU(poplar::Graph& graph, const GruParams& params,
                              poplar::program::Sequence& prog, const poplar::Tensor& fwdOutputInit,
                              const poplar::Tensor& fwdIntermediates, const GruWeights& weights,
                              const poplar::Tensor& input, const poplar::Tensor& realTimeSteps,
                              const poplar::Tensor& output, const poplar::Tensor& outputGrad,
                              poplar::Tensor* inputGrad, GruWeights& weightsGrad,
                              const poplar::Tensor& attentions, poplar::Tensor* attentionsGrad,
                              const poplar::DebugContext& debugContext = {},
                              const poplar::OptionFlags& options = {},
                              poplin::PlanningCache* planningCache = nullptr);

}  // namespace gru
}  // namespace popnn
