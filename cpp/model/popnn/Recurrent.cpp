#include "popnn/Recurrent.hpp"

#include "popnn/Rnn.hpp"
#include "popnn/internal/Recurrent.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "popops/Zero.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::rnn {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Copy;
using poplar::program::Sequence;
using poplin::PlanningCache;
using popops::expr::_1;
using popops::expr::_2;
using popops::expr::_3;

OptionFlags optionsOf(const Type& partials) {
  return {{"partialsType", partials == poplar::HALF ? "half" : "float"}};
}

/// The sizes of a layer over a sequence [steps, batch, size].
RnnParams paramsOf(const Tensor& sequence, std::size_t input, std::size_t output) {
  if (sequence.rank() != 3)
    throw poputil::poplibs_error("[popnn::rnn] needs a sequence [steps, batch, size]; got " +
                                 sequence.shapeToString() + ". Reshape it.");
  return {sequence.elementType(), sequence.dim(1), sequence.dim(0), {input, output}};
}

Tensor rows(const Tensor& sequence) {
  return sequence.reshapePartial(0, 2, {sequence.dim(0) * sequence.dim(1)});
}

}  // namespace

std::vector<std::pair<poplin::MatMulParams, OptionFlags>> getMatMulPrePlanParameters(
    std::size_t numSteps, std::size_t batchSize, std::size_t inputSize, std::size_t outputSize,
    const Type& dType, const Type& partialsType, bool inferenceOnly, bool hasFeedforwardWeights) {
  const OptionFlags options = optionsOf(partialsType);
  std::vector<std::pair<poplin::MatMulParams, OptionFlags>> found;
  const auto add = [&](std::size_t m, std::size_t k, std::size_t n) {
    found.push_back({{dType, dType, {1, m, k}, {1, k, n}}, options});
  };
  const std::size_t n = numSteps * batchSize;
  if (hasFeedforwardWeights) add(n, inputSize, outputSize);
  add(batchSize, outputSize, outputSize);
  if (inferenceOnly) return found;
  if (hasFeedforwardWeights) {
    add(n, outputSize, inputSize);
    add(outputSize, n, inputSize);
  }
  add(outputSize, n, outputSize);
  return found;
}

std::uint64_t getFwdFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize,
                          unsigned outputSize, bool weightInput) {
  const std::uint64_t outputs = std::uint64_t{sequenceSize} * batchSize * outputSize;
  return outputs * (2 * (std::uint64_t{outputSize} + (weightInput ? inputSize : 0)) + 1);
}
std::uint64_t getBwdFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize,
                          unsigned outputSize, bool calcInputGrad) {
  const std::uint64_t outputs = std::uint64_t{sequenceSize} * batchSize * outputSize;
  return outputs * (2 * (std::uint64_t{outputSize} + (calcInputGrad ? inputSize : 0)) + 1);
}
std::uint64_t getWuFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize,
                         unsigned outputSize) {
  const std::uint64_t outputs = std::uint64_t{sequenceSize} * batchSize * outputSize;
  return outputs * (2 * (std::uint64_t{outputSize} + inputSize) + 1);
}

Tensor createInput(Graph& graph, unsigned numSteps, unsigned batchSize, unsigned inputSize,
                   unsigned outputSize, const Type& dType, const Type&, bool,
                   const DebugContext& debugContext, PlanningCache*) {
  return createInputTensor(graph, {dType, batchSize, numSteps, {inputSize, outputSize}}, 1,
                           debugContext);
}

Tensor createFwdState(Graph& graph, const Type& dType, unsigned batchSize, unsigned outputSize,
                      Sequence& prog, bool initState, bool, const DebugContext& debugContext,
                      PlanningCache*) {
  const Tensor state =
      graph.addVariable(dType, {batchSize, outputSize}, poplar::VariableMappingMethod::LINEAR,
                        {debugContext, "state"});
  if (initState) popops::zero(graph, state, prog, {debugContext, "state"});
  return state;
}

Tensor getOutputFromFwdState(const Tensor& fwdState) { return fwdState; }

Tensor createWeightsInput(Graph& graph, unsigned sequenceSize, unsigned batchSize,
                          unsigned inputSize, unsigned outputSize, const Type& dType,
                          const Type& partialsType, bool, const DebugContext& debugContext,
                          PlanningCache* cache) {
  return internal::createMatrix(graph, dType, std::size_t{sequenceSize} * batchSize, inputSize,
                                outputSize, {debugContext, "weightsInput"}, optionsOf(partialsType),
                                cache)
      .transpose();
}
Tensor createWeightsFeedback(Graph& graph, unsigned batchSize, unsigned outputSize,
                             const Type& dType, const Type& partialsType, bool,
                             const DebugContext& debugContext, PlanningCache* cache) {
  return internal::createMatrix(graph, dType, batchSize, outputSize, outputSize,
                                {debugContext, "weightsFeedback"}, optionsOf(partialsType), cache)
      .transpose();
}

Tensor forwardWeightInput(Graph& graph, const Tensor& actIn, const Tensor& weights, Sequence& prog,
                          const Type& partialsType, bool, const DebugContext& debugContext,
                          PlanningCache* cache) {
  const RnnParams params = paramsOf(actIn, actIn.dim(actIn.rank() - 1), weights.dim(0));
  return poplin::matMul(graph, rows(actIn), weights.transpose(), prog,
                        {debugContext, "weighInputs"}, optionsOf(partialsType), cache)
      .reshape({params.maxTimeSteps, params.batchSize, weights.dim(0)});
}

Tensor forwardIterate(Graph& graph, const Tensor& feedFwdIn, const Tensor& initState,
                      const Tensor& feedbackWeights, const Tensor& biases, Sequence& prog,
                      NonLinearityType type, const Type& partialsType, bool,
                      const DebugContext& debugContext, PlanningCache* cache) {
  const std::size_t n = feedbackWeights.dim(0);
  const RnnParams params = paramsOf(feedFwdIn, n, n);
  const StateSequence sequence{createOutputTensor(graph, params, 1, {debugContext, "output"}), 0};
  const auto step = [&](Graph& g, const TimeStepState&, const RnnBatchwiseFlags&,
                        std::vector<Tensor>& state, const RnnSlice& slice, std::vector<Tensor>&,
                        Sequence*, const poplar::DebugNameAndId& dnai) {
    Sequence loop{DebugContext(dnai)};
    const Tensor sums = poplin::matMul(g, state[0][0], feedbackWeights.transpose(), loop,
                                       {dnai, "feedback"}, optionsOf(partialsType), cache);
    popops::mapInPlace(g, _1 + _2 + _3, {sums, slice.inputs[0], biases.expand({0})}, loop,
                       {dnai, "addBiases"});
    nonLinearityInPlace(g, type, sums, loop, {dnai, "nonLinearity"});
    loop.add(Copy(sums, state[0][0], false, {dnai, "next"}));
    return loop;
  };
  OptionFlags none;
  Rnn(graph, params, false, {initState.expand({0})}, sequence, {feedFwdIn}, nullptr, nullptr, {},
      {}, prog, step, 1, none, {debugContext, "rnnFwd"});
  return sequence.output;
}

Tensor createBwdState(Graph& graph, const Type& dType, unsigned batchSize, unsigned outputSize,
                      Sequence& prog, const DebugContext& debugContext, PlanningCache* cache) {
  return createFwdState(graph, dType, batchSize, outputSize, prog, true, false, debugContext,
                        cache);
}

Tensor backwardGradientStep(Graph& graph, const Tensor& nextLayerGrad, const Tensor& bwdState,
                            const Tensor& actOut, const Tensor& weightsFeedback, Sequence& prog,
                            NonLinearityType type, const Type& partialsType,
                            const DebugContext& debugContext, PlanningCache* cache) {
  internal::checkGradient(type, "rnn");
  const Tensor back = poplin::matMul(graph, bwdState, weightsFeedback, prog,
                                     {debugContext, "feedback"}, optionsOf(partialsType), cache);
  popops::addInPlace(graph, back, nextLayerGrad, prog, {debugContext, "grad"});
  return internal::gradientFromResult(graph, type, actOut, back, prog,
                                      {debugContext, "nonLinearity"});
}
std::pair<Tensor, Tensor> backwardGradientStep(Graph& graph, const Tensor& nextLayerGrad,
                                               const Tensor& bwdState, const Tensor& actOut,
                                               const Tensor& weightsInput,
                                               const Tensor& weightsFeedback, Sequence& prog,
                                               NonLinearityType type, const Type& partialsType,
                                               const DebugContext& debugContext,
                                               PlanningCache* cache) {
  const Tensor state = backwardGradientStep(graph, nextLayerGrad, bwdState, actOut, weightsFeedback,
                                            prog, type, partialsType, debugContext, cache);
  return {poplin::matMul(graph, state, weightsInput, prog, {debugContext, "inputGrad"},
                         optionsOf(partialsType), cache),
          state};
}

void paramDeltaUpdate(Graph& graph, const Tensor& bwdState, const Tensor& actIn,
                      const Tensor& prevOut, Tensor& weightsInputDeltasAcc,
                      Tensor& weightsFeedbackDeltasAcc, Tensor& biasDeltasAcc, Sequence& prog,
                      const Type& partialsType, const DebugContext& debugContext,
                      PlanningCache* cache) {
  const OptionFlags options = optionsOf(partialsType);
  const Tensor grads = bwdState.transpose();
  poplin::matMulAcc(graph, weightsInputDeltasAcc, 1, grads, actIn, prog,
                    {debugContext, "weightsInput"}, options, cache);
  poplin::matMulAcc(graph, weightsFeedbackDeltasAcc, 1, grads, prevOut, prog,
                    {debugContext, "weightsFeedback"}, options, cache);
  const Tensor sums =
      popops::reduce(graph, bwdState, {0}, popops::Operation::ADD, prog, {debugContext, "biases"});
  popops::addInPlace(graph, biasDeltasAcc, sums, prog, {debugContext, "biases"});
}

Tensor rnnFwdSequence(Graph& graph, Sequence& prog, const Tensor& fwdStateInit,
                      const Tensor* weightedIn, const Tensor& biases, const Tensor& feedFwdWeights,
                      const Tensor& feedbackWeights, const Tensor& prevLayerActs,
                      const NonLinearityType& type, const Type& partialsType, bool inferenceOnly,
                      const DebugContext& debugContext, PlanningCache* cache) {
  const Tensor weighted =
      weightedIn != nullptr ? *weightedIn
                            : forwardWeightInput(graph, prevLayerActs, feedFwdWeights, prog,
                                                 partialsType, inferenceOnly, debugContext, cache);
  return forwardIterate(graph, weighted, fwdStateInit, feedbackWeights, biases, prog, type,
                        partialsType, inferenceOnly, debugContext, cache);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> rnnBwdSequence(
    Graph& graph, bool doWU, bool ignoreInputGradientCalc, Sequence& prog,
    const Tensor& fwdStateInit, const Tensor& fwdState, const Tensor& biases,
    const Tensor& feedFwdWeights, const Tensor& feedbackWeights, const Tensor& outGradient,
    const Tensor& actIn, const NonLinearityType& type, const Type& partialsType,
    const DebugContext& debugContext, PlanningCache* cache) {
  const RnnParams params = paramsOf(outGradient, feedFwdWeights.dim(1), feedbackWeights.dim(0));
  const Tensor begin = graph.clone(fwdStateInit, {debugContext, "bwdState"});
  popops::zero(graph, begin, prog, {debugContext, "bwdState"});
  const StateSequence grads{createOutputTensor(graph, params, 1, {debugContext, "grads"}), 0};
  const auto step = [&](Graph& g, const TimeStepState&, const RnnBatchwiseFlags&,
                        std::vector<Tensor>& state, const RnnSlice& slice, std::vector<Tensor>&,
                        Sequence*, const poplar::DebugNameAndId& dnai) {
    Sequence loop{DebugContext(dnai)};
    const Tensor next =
        backwardGradientStep(g, slice.inputs[0], state[0][0], slice.inputs[1], feedbackWeights,
                             loop, type, partialsType, {dnai}, cache);
    loop.add(Copy(next, state[0][0], false, {dnai, "next"}));
    return loop;
  };
  OptionFlags none;
  Rnn(graph, params, true, {begin.expand({0})}, grads, {outGradient, fwdState}, nullptr, nullptr,
      {}, {}, prog, step, 1, none, {debugContext, "rnnBwd"});
  Tensor inputGrad, inputDeltas, feedbackDeltas, biasDeltas;
  if (!ignoreInputGradientCalc)
    inputGrad = poplin::matMul(graph, rows(grads.output), feedFwdWeights, prog,
                               {debugContext, "inputGrad"}, optionsOf(partialsType), cache)
                    .reshape({params.maxTimeSteps, params.batchSize, params.layerSizes[0]});
  if (doWU) {
    inputDeltas = graph.clone(feedFwdWeights, {debugContext, "weightsInput"});
    feedbackDeltas = graph.clone(feedbackWeights, {debugContext, "weightsFeedback"});
    biasDeltas = graph.clone(biases, {debugContext, "biases"});
    popops::zero(graph, {inputDeltas, feedbackDeltas, biasDeltas}, prog, {debugContext, "zero"});
    const Tensor before =
        shiftRnnTensor(graph, params, fwdState, fwdStateInit, prog, 1, debugContext);
    paramDeltaUpdate(graph, rows(grads.output), rows(actIn), rows(before), inputDeltas,
                     feedbackDeltas, biasDeltas, prog, partialsType, debugContext, cache);
  }
  return {inputGrad, inputDeltas, feedbackDeltas, biasDeltas};
}

}  // namespace popnn::rnn
