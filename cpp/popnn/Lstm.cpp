#include "popnn/Lstm.hpp"

#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Lstm.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Fill.hpp"
#include "popops/Reduce.hpp"
#include "popops/Zero.hpp"

namespace popnn::lstm {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
using poplin::PlanningCache;
using popops::expr::_1;
using popops::expr::_2;
using popops::expr::_3;
using popops::expr::_4;

/// x W + h U + b of the four units, [batch][4 * output size].
Tensor weighted(Graph& graph, const LstmParams& params, const LstmWeights& weights,
                const Tensor& input, const Tensor& output, bool input_is_weighted, Sequence& prog,
                const DebugContext& debug, const OptionFlags& options, PlanningCache* cache) {
  const bool with_input = params.doInputWeightCalc && !input_is_weighted;
  const Tensor rows = with_input ? poplar::concat(input, output, 1) : output;
  const Tensor sums = poplin::matMul(graph, rows, weightMatrix(params, weights, with_input), prog,
                                     {debug, "weigh"}, options, cache);
  const Tensor biases = internal::ordered(weights.biases, orderOf(params)).flatten().expand({0});
  std::vector<Tensor> terms{sums, biases};
  if (input_is_weighted && params.doInputWeightCalc) terms.push_back(input);
  if (terms.size() == 3)
    popops::mapInPlace(graph, _1 + _2 + _3, terms, prog, {debug, "addBiases"});
  else
    popops::mapInPlace(graph, _1 + _2, terms, prog, {debug, "addBiases"});
  return sums;
}

/// One forward step: state becomes the next one; `keep` [6][batch][output size], where valid,
/// becomes what is kept.
void forwardStep(Graph& graph, const LstmParams& params, const Tensor& units,
                 const LstmState& state, const rnn::RnnBatchwiseFlags& flags, const Tensor& keep,
                 Sequence& prog, const DebugContext& debug) {
  const std::size_t n = Sizes(params).O;
  const Tensor gates = units.slice(0, 3 * n, 1), candidate = units.slice(3 * n, 4 * n, 1);
  nonLinearityInPlace(graph, params.recurrentActivation, gates, prog, {debug, "gates"});
  nonLinearityInPlace(graph, params.activation, candidate, prog, {debug, "candidate"});
  const Tensor forget = gates.slice(0, n, 1), input = gates.slice(n, 2 * n, 1),
               output = gates.slice(2 * n, 3 * n, 1);
  const Tensor cell =
      popops::map(graph, _1 * _2 + _3 * _4, {forget, state.cellState, input, candidate}, prog,
                  {debug, "cellState"});
  const Tensor tanh = nonLinearity(graph, params.activation, cell, prog, {debug, "tanh"});
  const Tensor result = popops::mul(graph, output, tanh, prog, {debug, "output"});
  if (keep.valid()) {
    std::vector<Tensor> kept;
    for (const Tensor& t : {forget, input, output, candidate, tanh, state.cellState})
      kept.push_back(t.expand({0}));
    prog.add(Copy(poplar::concat(kept), keep, false, {debug, "keep"}));
  }
  const Tensor old = poplar::concat(state.cellState, state.output, 1),
               next = poplar::concat(cell, result, 1);
  if (flags.valid())
    popops::mapInPlace(graph, _1 * _3 + _2 * _4,
                       {old, next, internal::column(flags.inverse), internal::column(flags.mask)},
                       prog, {debug, "next"});
  else
    prog.add(Copy(next, old, false, {debug, "next"}));
}

namespace pe = popops::expr;

pe::Any activated(NonLinearityType type, const pe::Any& x) {
  switch (type) {
    case NonLinearityType::SIGMOID:
      return pe::Any(pe::Sigmoid(x));
    case NonLinearityType::TANH:
      return pe::Any(pe::Tanh(x));
    case NonLinearityType::RELU:
      return pe::Any(pe::Relu(x));
    default:
      return pe::Any(
          pe::Clamp(x * pe::Const(0.2f) + pe::Const(0.5f), pe::Const(0.0f), pe::Const(1.0f)));
  }
}

/// What one step adds to the product of the weights: biases, or the weighted inputs with biases.
/// Units are in the order of the weights.
struct Terms {
  Tensor sums, rest;  ///< [batch][4 * output size]
};

/// One forward step that keeps nothing: two expressions.
void inferenceStep(Graph& graph, const LstmParams& params, const Terms& terms,
                   const LstmState& state, Sequence& prog, const DebugContext& debug) {
  const std::size_t n = Sizes(params).O;
  const auto order = orderOf(params);  // of forget, input, output, candidate
  std::vector<Tensor> operands;
  const auto operand = [&](const Tensor& t) {
    operands.push_back(t);
    return pe::PlaceHolder(static_cast<unsigned>(operands.size()));
  };
  const auto unit = [&](unsigned which) {
    const std::size_t at = order[which] * n;
    const pe::PlaceHolder sum = operand(terms.sums.slice(at, at + n, 1));
    const auto type = which == kCandidate ? params.activation : params.recurrentActivation;
    return activated(type, pe::Any(sum + operand(terms.rest.slice(at, at + n, 1))));
  };
  const pe::PlaceHolder before = operand(state.cellState);
  const pe::Any cell(unit(kForget) * before + unit(kInput) * unit(kCandidate));
  popops::mapInPlace(graph, cell, operands, prog, {debug, "cellState"});
  operands.clear();
  const pe::PlaceHolder now = operand(state.cellState);
  const pe::Any output(activated(params.activation, pe::Any(now)) * unit(kOutput));
  popops::mapWithOutput(graph, output, operands, state.output, prog, {debug, "output"});
}

bool hasExpression(NonLinearityType type) { return internal::kernelActivation(type) >= 0; }

rnn::StateSequence outputSequence(Graph& graph, const LstmParams& params,
                                  const DebugContext& debug) {
  if (!params.outputFullSequence) return {Tensor(), 0};
  return {rnn::createOutputTensor(graph, params.rnn, 1, {debug, "output"}), 0};
}

/// The inputs' part of the units of all steps, [T][B][4 * O].
Tensor weighInputs(Graph& graph, const LstmParams& params, const Tensor& weights, const Tensor& in,
                   Sequence& prog, const DebugContext& debug, const OptionFlags& options,
                   PlanningCache* cache) {
  const Sizes s(params);
  return poplin::matMul(graph, in.reshape({s.T * s.B, s.I}),
                        internal::asMatrix(weights, orderOf(params)), prog, {debug, "weighInputs"},
                        options, cache)
      .reshape({s.T, s.B, 4 * s.O});
}

/// The layer where nothing is kept and all sequences have all steps.
std::pair<Tensor, Tensor> inferred(Graph& graph, const LstmParams& params,
                                   const LstmState& stateInit, const Tensor& in,
                                   const LstmWeights& weights, Sequence& prog,
                                   const DebugContext& debugContext,
                                   const internal::RecurrentOptions& parsed, PlanningCache* cache) {
  const Sizes s(params);
  const std::vector<unsigned> as_given{0, 1, 2, 3};
  const bool ahead = parsed.preCalcWeights;
  const Tensor biases = weights.biases.flatten().expand({0});
  const Tensor from_input = internal::asMatrix(weights.inputWeights, as_given);
  const Tensor from_output = internal::asMatrix(weights.outputWeights, as_given);
  Tensor inputs = in;
  if (ahead) {
    inputs = poplin::matMul(graph, in.reshape({s.T * s.B, s.I}), from_input, prog,
                            {debugContext, "weighInputs"}, parsed.matmul, cache);
    popops::addInPlace(graph, inputs, biases, prog, {debugContext, "addBiases"});
    inputs = inputs.reshape({s.T, s.B, 4 * s.O});
  }
  const Tensor matrix = ahead ? from_output : poplar::concat(from_input, from_output);
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags&,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    Sequence loop{DebugContext(dnai)};
    const Tensor &x = slice.inputs[0], h = state[0][0];
    const Tensor sums = poplin::matMul(g, ahead ? h : poplar::concat(x, h, 1), matrix, loop,
                                       {dnai, "weigh"}, parsed.matmul, cache);
    inferenceStep(g, params, {sums, ahead ? x : biases.broadcast(static_cast<unsigned>(s.B), 0)},
                  {h, state[1][0]}, loop, {dnai});
    return loop;
  };
  const auto sequence = outputSequence(graph, params, debugContext);
  OptionFlags none;
  const auto last = rnn::Rnn(
      graph, params.rnn, false, {stateInit.output.expand({0}), stateInit.cellState.expand({0})},
      sequence, {inputs}, nullptr, nullptr, {}, {}, prog, step, 1, none, {debugContext, "lstmFwd"});
  return {params.outputFullSequence ? sequence.output : last[0][0], last[1][0]};
}

/// The layer in steps of its own: the output, and the last cell state.
std::pair<Tensor, Tensor> composed(Graph& graph, const LstmParams& params,
                                   const LstmState& stateInit, const Tensor& in,
                                   const LstmWeights& weights, Tensor* intermediates,
                                   Sequence& prog, const DebugContext& debugContext,
                                   const internal::RecurrentOptions& parsed, PlanningCache* cache) {
  const bool ahead = parsed.preCalcWeights && params.doInputWeightCalc;
  if (intermediates == nullptr && params.doInputWeightCalc && !params.rnn.variableTimeSteps() &&
      hasExpression(params.activation) && hasExpression(params.recurrentActivation))
    return inferred(graph, params, stateInit, in, weights, prog, debugContext, parsed, cache);
  const Tensor inputs = ahead ? weighInputs(graph, params, weights.inputWeights, in, prog,
                                            debugContext, parsed.matmul, cache)
                              : in;
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    Sequence loop{DebugContext(dnai)};
    const Tensor units = weighted(g, params, weights, slice.inputs[0], state[0][0], ahead, loop,
                                  {dnai}, parsed.matmul, cache);
    forwardStep(g, params, units, {state[0][0], state[1][0]}, flags, slice.interimOut, loop,
                {dnai});
    return loop;
  };
  const auto sequence = outputSequence(graph, params, debugContext);
  if (intermediates != nullptr)
    *intermediates =
        rnn::createOutputTensor(graph, params.rnn, kNumKept, 1, {debugContext, "intermediates"})
            .reshapePartial(0, 1, {params.rnn.maxTimeSteps, kNumKept});
  OptionFlags none;
  const auto last =
      rnn::Rnn(graph, params.rnn, false,
               {stateInit.output.expand({0}), stateInit.cellState.expand({0})}, sequence, {inputs},
               nullptr, intermediates, {}, {}, prog, step, 1, none, {debugContext, "lstmFwd"});
  return {params.outputFullSequence ? sequence.output : last[0][0], last[1][0]};
}

}  // namespace

const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder() {
  return {BASIC_LSTM_CELL_FORGET_GATE, BASIC_LSTM_CELL_INPUT_GATE, BASIC_LSTM_CELL_CANDIDATE,
          BASIC_LSTM_CELL_OUTPUT_GATE};
}

LstmParams::LstmParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
                       std::vector<std::size_t> layerSizes, NonLinearityType activation,
                       NonLinearityType recurrentActivation)
    : LstmParams(dataType, batchSize, timeSteps, Tensor(), std::move(layerSizes), activation,
                 recurrentActivation) {}

LstmParams::LstmParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
                       const Tensor& timeSteps, std::vector<std::size_t> layerSizes,
                       NonLinearityType activation, NonLinearityType recurrentActivation)
    : rnn(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes),
      dataType(dataType),
      batchSize(batchSize),
      timeSteps(maxTimeSteps),
      layerSizes(std::move(layerSizes)),
      activation(activation),
      recurrentActivation(recurrentActivation) {}

Tensor LstmState::getAsTensor() const {
  return poplar::concat(output.expand({0}), cellState.expand({0}));
}

std::vector<std::pair<poplin::MatMulParams, OptionFlags>> getMatMulPrePlanParameters(
    LstmParams params, OptionFlags opts) {
  const internal::RecurrentOptions options(opts, "lstm");
  const Sizes s(params);
  const poplar::Type type = params.rnn.dataType;
  const std::size_t in = s.I + s.O;
  return {{{type, type, {1, s.B, in}, {1, in, 4 * s.O}}, options.matmul},
          {{type, type, {1, s.B, 4 * s.O}, {1, 4 * s.O, in}}, options.matmul},
          {{type, type, {1, in, s.T * s.B}, {1, s.T * s.B, 4 * s.O}}, options.matmul}};
}

std::uint64_t getBasicLstmCellFwdFlops(const LstmParams& params) {
  const Sizes s(params);
  const std::size_t in = s.O + (params.doInputWeightCalc ? s.I : 0);
  return s.T * s.B * s.O * (8 * in + 4);  // products; 3 multiplications and an addition
}
std::uint64_t getBasicLstmCellBwdFlops(const LstmParams& params) {
  const Sizes s(params);
  const std::size_t in = s.O + (params.calcInputGradients ? s.I : 0);
  return s.T * s.B * s.O * (8 * in + 8);  // products; 6 multiplications and 2 additions
}
std::uint64_t getBasicLstmCellWuFlops(const LstmParams& params) {
  const Sizes s(params);
  return s.T * s.B * s.O * (8 * (s.I + s.O) + 4);
}

Tensor createInput(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return rnn::createInputTensor(graph, params.rnn, 1, debugContext);
}

Tensor createInitialOutput(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                           const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, {debugContext, "output"})[0];
}
Tensor createInitialCellState(Graph& graph, const LstmParams& params,
                              const DebugContext& debugContext, const OptionFlags& options,
                              PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, {debugContext, "cellState"})[0];
}
LstmState createInitialState(Graph& graph, const LstmParams& params,
                             const DebugContext& debugContext, const OptionFlags& options,
                             PlanningCache* cache) {
  return {createInitialOutput(graph, params, debugContext, options, cache),
          createInitialCellState(graph, params, debugContext, options, cache)};
}

void zeroInitialState(Graph& graph, const LstmState& initialState, Sequence& prog,
                      const DebugContext& debugContext) {
  popops::zero(graph, initialState.output, prog, {debugContext, "output"});
  popops::zero(graph, initialState.cellState, prog, {debugContext, "cellState"});
}

std::pair<Tensor, Tensor> createWeightsKernel(Graph& graph, const LstmParams& params,
                                              const DebugContext& debugContext,
                                              const OptionFlags& options, PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "lstm");
  const Sizes s(params);
  const auto order = orderOf(params);
  const Tensor matrix = internal::createMatrix(graph, params.rnn.dataType, s.B, s.I + s.O, 4 * s.O,
                                               {debugContext, "weights"}, parsed.matmul, cache);
  return {internal::asUnits(matrix.slice(0, s.I), order),
          internal::asUnits(matrix.slice(s.I, s.I + s.O), order)};
}

Tensor createWeightsBiases(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                           const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "lstm");
  return graph.addVariable(params.rnn.dataType, {4, Sizes(params).O},
                           poplar::VariableMappingMethod::LINEAR, {debugContext, "biases"});
}

LstmWeights createWeights(Graph& graph, const LstmParams& params, const DebugContext& debugContext,
                          const OptionFlags& options, PlanningCache* cache) {
  const auto [input, output] = createWeightsKernel(graph, params, debugContext, options, cache);
  return {input, output, createWeightsBiases(graph, params, debugContext, options, cache)};
}

std::pair<Tensor, Tensor> lstmFwd(Graph& graph, const LstmParams& params,
                                  const LstmState& stateInit, const Tensor& in,
                                  const LstmWeights& weights, Tensor* intermediates, Sequence& prog,
                                  const DebugContext& debugContext, const OptionFlags& options,
                                  PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "lstm");
  const auto compose = [&](Sequence& program) {
    return composed(graph, params, stateInit, in, weights, intermediates, program, debugContext,
                    parsed, cache);
  };
  if (!hasKernel(graph, params, parsed)) return compose(prog);
  internal::FusedStep step(graph);
  const auto results = step.compose(compose);
  step.reads(in).reads(weights.inputWeights, false).reads(weights.outputWeights, false);
  step.reads(weights.biases).reads(stateInit.output).reads(stateInit.cellState);
  describe(step, params);
  step.writes(results.first).writes(results.second);
  step.attributes().set("keeps", std::int64_t{intermediates != nullptr});
  if (intermediates != nullptr) step.writes(*intermediates);
  step.emit("popnn.lstm_forward", prog, {debugContext, "lstmFwd"});
  return results;
}

Tensor lstmFwd(Graph& graph, const LstmParams& params, Sequence& prog, const LstmState& stateInit,
               const LstmWeights& weights, const Tensor& in, Tensor* intermediates,
               const DebugContext& debugContext, const OptionFlags& options, PlanningCache* cache) {
  return lstmFwd(graph, params, stateInit, in, weights, intermediates, prog, debugContext, options,
                 cache)
      .first;
}

}  // namespace popnn::lstm
