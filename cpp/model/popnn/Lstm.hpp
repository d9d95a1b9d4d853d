#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "poplar/Tensor.hpp"
#include "poplin/MatMul.hpp"
#include "popnn/LstmDef.hpp"
#include "popnn/NonLinearityDef.hpp"
#include "popnn/Rnn.hpp"

namespace popnn {
/// LSTM layers: with x the input and h, c the output and cell state of the step before,
///
///     f, i, o = sigmoid(x W + h U + b)   each with weights of its own
///     g = tanh(x W + h U + b)
///     c' = f * c + i * g,   h' = o * tanh(c')
///
/// Options: partialsType and availableMemoryProportion are those of the matrix products;
/// preCalcWeights ("false") weights the inputs of all steps in one product before the steps, and
/// computes the inputs' gradients in one product after the steps of the backward pass.
/// inferenceOnly, weightAccumulatorsType, recomputationMode, numShards, rnnCodeReuse,
/// rnnStepsPerWU and rnnOptimizeForMemory are read but have no effect: weight gradients are one
/// product over all steps, and all that the backward pass needs is kept. A planning cache is passed
/// on to the products.
///
/// With variable time steps, a sequence keeps its state after its end, and the outputs there are
/// zero.
namespace lstm {

/// Forget gate, input gate, candidate, output gate.
const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder();

struct LstmParams {
  rnn::RnnParams rnn;

  poplar::Type dataType;                ///< deprecated: rnn.dataType
  std::size_t batchSize;                ///< deprecated: rnn.batchSize
  std::size_t timeSteps;                ///< deprecated: rnn.maxTimeSteps
  std::vector<std::size_t> layerSizes;  ///< deprecated: rnn.layerSizes
  /// Whether the output is that of each step, or of the last one.
  bool outputFullSequence = true;
  /// Whether inputs are weighted; for benchmarks only.
  bool doInputWeightCalc = true;
  bool calcInputGradients = true;
  /// With a number of steps for each sequence: keeps the final state of each. The model always
  /// does.
  bool preserveFinalState = false;
  /// The order of the units in dimension 0 of weights and biases.
  std::vector<BasicLstmCellUnit> cellOrder = getDefaultBasicLstmCellOrder();
  NonLinearityType activation = NonLinearityType::TANH;
  NonLinearityType recurrentActivation = NonLinearityType::SIGMOID;

  LstmParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
             std::vector<std::size_t> layerSizes,
             NonLinearityType activation = NonLinearityType::TANH,
             NonLinearityType recurrentActivation = NonLinearityType::SIGMOID);
  LstmParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
             const poplar::Tensor& timeSteps, std::vector<std::size_t> layerSizes,
             NonLinearityType activation = NonLinearityType::TANH,
             NonLinearityType recurrentActivation = NonLinearityType::SIGMOID);
};

/// The state of a cell, [batch, output size] each, or its gradients.
struct LstmState {
  poplar::Tensor output;
  poplar::Tensor cellState;

  poplar::Tensor getAsTensor() const;  ///< [2, batch, output size]
};

/// The products of forward, backward and weight update, for poplin::preplanMatMuls.
std::vector<std::pair<poplin::MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(
    LstmParams params, poplar::OptionFlags opts);

/// Floating point operations, those of activations and biases not counted.
std::uint64_t getBasicLstmCellFwdFlops(const LstmParams& params);
std::uint64_t getBasicLstmCellBwdFlops(const LstmParams& params);
std::uint64_t getBasicLstmCellWuFlops(const LstmParams& params);

/// [time steps, batch, input size].
poplar::Tensor createInput(poplar::Graph& graph, const LstmParams& params,
                           const poplar::DebugContext& debugContext,
                           const poplar::OptionFlags& options = {},
                           poplin::matmul::PlanningCache* planningCache = nullptr);

/// The state before the first step; write it or use zeroInitialState.
poplar::Tensor createInitialOutput(poplar::Graph& graph, const LstmParams& params,
                                   const poplar::DebugContext& debugContext,
                                   const poplar::OptionFlags& options = {},
                                   poplin::matmul::PlanningCache* planningCache = nullptr);
poplar::Tensor createInitialCellState(poplar::Graph& graph, const LstmParams& params,
                                      const poplar::DebugContext& debugContext,
                                      const poplar::OptionFlags& options = {},
                                      poplin::matmul::PlanningCache* planningCache = nullptr);
LstmState createInitialState(poplar::Graph& graph, const LstmParams& params,
                             const poplar::DebugContext& debugContext,
                             const poplar::OptionFlags& options = {},
                             poplin::matmul::PlanningCache* planningCache = nullptr);
void zeroInitialState(poplar::Graph& graph, const LstmState& initialState,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});

/// Parameters, or their gradients.
struct LstmWeights {
  poplar::Tensor inputWeights;   ///< [4, input size, output size]
  poplar::Tensor outputWeights;  ///< [4, output size, output size]
  poplar::Tensor biases;         ///< [4, output size]
};

/// The input and output weights.
std::pair<poplar::Tensor, poplar::Tensor> createWeightsKernel(
    poplar::Graph& graph, const LstmParams& params, const poplar::DebugContext& debugContext,
    const poplar::OptionFlags& options = {},
    poplin::matmul::PlanningCache* planningCache = nullptr);
poplar::Tensor createWeightsBiases(poplar::Graph& graph, const LstmParams& params,
                                   const poplar::DebugContext& debugContext,
                                   const poplar::OptionFlags& options = {},
                                   poplin::matmul::PlanningCache* planningCache = nullptr);
LstmWeights createWeights(poplar::Graph& graph, const LstmParams& params,
                          const poplar::DebugContext& debugContext,
                          const poplar::OptionFlags& options = {},
                          poplin::matmul::PlanningCache* planningCache = nullptr);

/// Runs the layer. `intermediates`, null for inference, is set to what the backward pass needs.
/// Returns the output [time steps, batch, output size], or of the last step [batch, output size].
poplar::Tensor lstmFwd(poplar::Graph& graph, const LstmParams& params,
                       poplar::program::Sequence& prog, const LstmState& stateInit,
                       const LstmWeights& weights, const poplar::Tensor& in,
                       poplar::Tensor* intermediates, const poplar::DebugContext& debugContext = {},
                       const poplar::OptionFlags& options = {},
                       poplin::matmul::PlanningCache* planningCache = nullptr);
/// The same; returns the last cell state too.
std::pair<poplar::Tensor, poplar::Tensor> lstmFwd(
    poplar::Graph& graph, const LstmParams& params, const LstmState& stateInit,
    const poplar::Tensor& in, const LstmWeights& weights, poplar::Tensor* intermediates,
    poplar::program::Sequence& fwdProg, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {},
    poplin::matmul::PlanningCache* planningCache = nullptr);

/// The gradients of the initial state, and of the inputs unless inputGrad is null. outputGrad has
/// the output's shape; lastCellStateGrad may be null. bwdIntermediates, unless null, is set to what
/// lstmWU needs.
LstmState lstmBwd(poplar::Graph& graph, const LstmParams& params, poplar::program::Sequence& prog,
                  const LstmState& fwdStateInit, const poplar::Tensor& fwdIntermediates,
                  const LstmWeights& weights, const poplar::Tensor& input,
                  const poplar::Tensor& output, const poplar::Tensor& outputGrad,
                  const poplar::Tensor* lastCellStateGrad, poplar::Tensor* inputGrad,
                  poplar::Tensor* bwdIntermediates, const poplar::DebugContext& debugContext = {},
                  const poplar::OptionFlags& options = {},
                  poplin::matmul::PlanningCache* planningCache = nullptr);

/// The gradients of the parameters.
LstmWeights lstmWU(poplar::Graph& graph, const LstmParams& params, poplar::program::Sequence& prog,
                   const LstmState& fwdStateInit, const poplar::Tensor& fwdIntermediates,
                   const poplar::Tensor& bwdIntermediates, const LstmWeights& weights,
                   const poplar::Tensor& input, const poplar::Tensor& output,
                   const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {},
                   poplin::matmul::PlanningCache* planningCache = nullptr);

/// lstmBwd and lstmWU in one call.
LstmState lstmBwdWithWU(poplar::Graph& graph, const LstmParams& params,
                        poplar::program::Sequence& prog, const LstmState& fwdStateInit,
                        const poplar::Tensor& fwdIntermediates, const LstmWeights& weights,
                        const poplar::Tensor& input, const poplar::Tensor& output,
                        const poplar::Tensor& outputGrad, const poplar::Tensor* lastCellStateGrad,
                        poplar::Tensor* inputGrad, LstmWeights& weightsGrad,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {},
                        poplin::matmul::PlanningCache* planningCache = nullptr);

}  // namespace lstm
}  // namespace popnn
