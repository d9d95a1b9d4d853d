#pragma once
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplin/MatMul.hpp"
#include "popnn/NonLinearity.hpp"

namespace popnn {
/// Vanilla recurrent layers: y = nonLinearity(x Wi^T + h Wf^T + b), with x [batch, input size] the
/// input and h the output of the step before, Wi [output size, input size] the input weights, Wf
/// [output size, output size] the feedback weights and b [output size]. inferenceOnly has no
/// effect; a planning cache and partialsType are passed to the matrix products.
namespace rnn {

/// The products of forward, backward and weight update, for poplin::preplanMatMuls.
std::vector<std::pair<poplin::MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(
    std::size_t numSteps, std::size_t batchSize, std::size_t inputSize, std::size_t outputSize,
    const poplar::Type& dType, const poplar::Type& partialsType = poplar::FLOAT,
    bool inferenceOnly = false, bool hasFeedforwardWeights = true);

/// Floating point operations, those of the non-linearity not counted.
std::uint64_t getFwdFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize,
                          unsigned outputSize, bool weightInput = true);
std::uint64_t getBwdFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize,
                          unsigned outputSize, bool calcInputGrad = true);
std::uint64_t getWuFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize,
                         unsigned outputSize);

/// [numSteps, batchSize, inputSize].
poplar::Tensor createInput(poplar::Graph& graph, unsigned numSteps, unsigned batchSize,
                           unsigned inputSize, unsigned outputSize, const poplar::Type& dType,
                           const poplar::Type& partialsType = poplar::FLOAT,
                           bool inferenceOnly = false,
                           const poplar::DebugContext& debugContext = {},
                           poplin::matmul::PlanningCache* planningCache = nullptr);
/// The state before the first step, [batchSize, outputSize]; zero if initState.
poplar::Tensor createFwdState(poplar::Graph& graph, const poplar::Type& dType, unsigned batchSize,
                              unsigned outputSize, poplar::program::Sequence& prog, bool initState,
                              bool inferenceOnly, const poplar::DebugContext& debugContext = {},
                              poplin::matmul::PlanningCache* planningCache = nullptr);
/// Returns the state itself, which is the output.
poplar::Tensor getOutputFromFwdState(const poplar::Tensor& fwdState);
poplar::Tensor createWeightsInput(poplar::Graph& graph, unsigned sequenceSize, unsigned batchSize,
                                  unsigned inputSize, unsigned outputSize,
                                  const poplar::Type& dType,
                                  const poplar::Type& partialsType = poplar::FLOAT,
                                  bool inferenceOnly = false,
                                  const poplar::DebugContext& debugContext = {},
                                  poplin::matmul::PlanningCache* planningCache = nullptr);
poplar::Tensor createWeightsFeedback(poplar::Graph& graph, unsigned batchSize, unsigned outputSize,
                                     const poplar::Type& dType,
                                     const poplar::Type& partialsType = poplar::FLOAT,
                                     bool inferenceOnly = false,
                                     const poplar::DebugContext& debugContext = {},
                                     poplin::matmul::PlanningCache* planningCache = nullptr);

/// x Wi^T of all steps, [numSteps, batchSize, outputSize].
poplar::Tensor forwardWeightInput(poplar::Graph& graph, const poplar::Tensor& actIn,
                                  const poplar::Tensor& weights, poplar::program::Sequence& prog,
                                  const poplar::Type& partialsType = poplar::FLOAT,
                                  bool inferenceOnly = false,
                                  const poplar::DebugContext& debugContext = {},
                                  poplin::matmul::PlanningCache* planningCache = nullptr);
/// The outputs of all steps from forwardWeightInput's result.
poplar::Tensor forwardIterate(poplar::Graph& graph, const poplar::Tensor& feedFwdIn,
                              const poplar::Tensor& initState,
                              const poplar::Tensor& feedbackWeights, const poplar::Tensor& biases,
                              poplar::program::Sequence& prog,
                              popnn::NonLinearityType nonLinearityType,
                              const poplar::Type& partialsType = poplar::FLOAT,
                              bool inferenceOnly = false,
                              const poplar::DebugContext& debugContext = {},
                              poplin::matmul::PlanningCache* planningCache = nullptr);

/// The state with which the backward pass begins: zeros [batchSize, outputSize].
poplar::Tensor createBwdState(poplar::Graph& graph, const poplar::Type& dType, unsigned batchSize,
                              unsigned outputSize, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext = {},
                              poplin::matmul::PlanningCache* planningCache = nullptr);
/// One backward step: the gradient of the step's input and the new state, which is the gradient
/// before the non-linearity. The second form returns the state alone.
std::pair<poplar::Tensor, poplar::Tensor> backwardGradientStep(
    poplar::Graph& graph, const poplar::Tensor& nextLayerGrad, const poplar::Tensor& bwdState,
    const poplar::Tensor& actOut, const poplar::Tensor& weightsInput,
    const poplar::Tensor& weightsFeedback, poplar::program::Sequence& prog,
    popnn::NonLinearityType nonLinearityType, const poplar::Type& partialsType = poplar::FLOAT,
    const poplar::DebugContext& debugContext = {},
    poplin::matmul::PlanningCache* planningCache = nullptr);
poplar::Tensor backwardGradientStep(poplar::Graph& graph, const poplar::Tensor& nextLayerGrad,
                                    const poplar::Tensor& bwdState, const poplar::Tensor& actOut,
                                    const poplar::Tensor& weightsFeedback,
                                    poplar::program::Sequence& prog,
                                    popnn::NonLinearityType nonLinearityType,
                                    const poplar::Type& partialsType = poplar::FLOAT,
                                    const poplar::DebugContext& debugContext = {},
                                    poplin::matmul::PlanningCache* planningCache = nullptr);
/// Adds a step's gradients of the parameters to those given.
void paramDeltaUpdate(poplar::Graph& graph, const poplar::Tensor& bwdState,
                      const poplar::Tensor& actIn, const poplar::Tensor& prevOut,
                      poplar::Tensor& weightsInputDeltasAcc,
                      poplar::Tensor& weightsFeedbackDeltasAcc, poplar::Tensor& biasDeltasAcc,
                      poplar::program::Sequence& prog,
                      const poplar::Type& partialsType = poplar::FLOAT,
                      const poplar::DebugContext& debugContext = {},
                      poplin::matmul::PlanningCache* planningCache = nullptr);

/// The outputs of all steps. weightedIn, unless null, replaces
/// forwardWeightInput(prevLayerActs, feedFwdWeights).
poplar::Tensor rnnFwdSequence(poplar::Graph& graph, poplar::program::Sequence& prog,
                              const poplar::Tensor& fwdStateInit, const poplar::Tensor* weightedIn,
                              const poplar::Tensor& biases, const poplar::Tensor& feedFwdWeights,
                              const poplar::Tensor& feedbackWeights,
                              const poplar::Tensor& prevLayerActs,
                              const popnn::NonLinearityType& nonLinearityType,
                              const poplar::Type& partialsType, bool inferenceOnly,
                              const poplar::DebugContext& debugContext = {},
                              poplin::matmul::PlanningCache* planningCache = nullptr);
/// The gradients of the inputs (invalid if ignoreInputGradientCalc) and, if doWU, of input weights,
/// feedback weights and biases.
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor, poplar::Tensor> rnnBwdSequence(
    poplar::Graph& graph, bool doWU, bool ignoreInputGradientCalc, poplar::program::Sequence& prog,
    const poplar::Tensor& fwdStateInit, const poplar::Tensor& fwdState,
    const poplar::Tensor& biases, const poplar::Tensor& feedFwdWeights,
    const poplar::Tensor& feedbackWeights, const poplar::Tensor& outGradient,
    const poplar::Tensor& actIn, const popnn::NonLinearityType& nonLinearityType,
    const poplar::Type& partialsType, const poplar::DebugContext& debugContext = {},
    poplin::matmul::PlanningCache* planningCache = nullptr);

}  // namespace rnn
}  // namespace popnn
