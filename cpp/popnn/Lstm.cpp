#include "popnn/Lstm.hpp"

#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Lstm.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Zero.hpp"
#include "popops/internal/Map.hpp"

namespace popnn::lstm {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
using poplin::PlanningCache;
namespace pe = popops::expr;
using pe::_1;
using pe::_2;
using pe::_3;
using pe::_4;
using pe::_5;
using pe::_6;

/// A layer that runs forward.
struct Forward {
  const LstmParams& params;
  const LstmWeights& weights;
  bool ahead;  ///< whether inputs come weighted, with the biases
  OptionFlags options;
  PlanningCache* cache;
  std::vector<unsigned> order = orderOf(params);
  std::size_t n = Sizes(params).O;

  /// x W + b of all steps, [T][4][B][O], where the state lies.
  Tensor weighInputs(Graph& graph, const Tensor& in, Sequence& prog,
                     const DebugContext& debug) const {
    const Sizes s(params);
    const Tensor sums = poplin::matMul(graph, in.reshape({s.T * s.B, s.I}),
                                       internal::asMatrix(weights.inputWeights), prog,
                                       {debug, "weighInputs"}, options, cache);
    const Tensor placed = rnn::createOutputTensor(graph, params.rnn, 4, 1, {debug, "weighted"})
                              .reshapePartial(0, 1, {s.T, 4});
    popops::mapWithOutput(graph, _1 + _2,
                          {sums.reshape({s.T, s.B, 4, s.O}).dimShuffle({0, 2, 1, 3}),
                           weights.biases.expand({0}).expand({2})},
                          placed, prog, {debug, "addBiases"});
    return placed;
  }

  /// The gates and the candidate of a step, in [4][batch][output size].
  void units(Graph& graph, const Tensor& input, const Tensor& output, const Tensor& to,
             Sequence& prog, const DebugContext& debug) const {
    const bool with_input = params.doInputWeightCalc && !ahead;
    const Tensor sums =
        poplin::matMul(graph, with_input ? poplar::concat(input, output, 1) : output,
                       weightMatrix(weights, with_input), prog, {debug, "weigh"}, options, cache);
    std::vector<pe::Expr> expressions;
    std::vector<Tensor> terms, results;
    for (unsigned unit = 0; unit < 4; ++unit) {
      const std::size_t at = order[unit];
      const pe::PlaceHolder sum(2 * unit + 1), rest(2 * unit + 2);
      terms.push_back(sums.slice(at * n, (at + 1) * n, 1));
      terms.push_back(ahead ? input[at] : weights.biases[at].expand({0}));
      const auto type = unit == kCandidate ? params.activation : params.recurrentActivation;
      const bool fused = internal::kernelActivation(type) >= 0;
      expressions.push_back(fused ? internal::activated(type, pe::Any(sum + rest))
                                  : pe::Any(sum + rest));
      results.push_back(to[unit]);
    }
    popops::internal::mapWithOutputs(graph, expressions, terms, results, prog, {debug, "units"});
    if (internal::kernelActivation(params.recurrentActivation) < 0)
      nonLinearityInPlace(graph, params.recurrentActivation, to.slice(0, 3), prog,
                          {debug, "gates"});
    if (internal::kernelActivation(params.activation) < 0)
      nonLinearityInPlace(graph, params.activation, to[kCandidate], prog, {debug, "candidate"});
  }

  /// The next state; `keep` [6][batch][output size], where valid, becomes what is kept.
  LstmState next(Graph& graph, const LstmState& state, const Tensor& units, const Tensor& keep,
                 bool in_place, Sequence& prog, const DebugContext& debug) const {
    if (keep.valid()) prog.add(Copy(state.cellState, keep[kPrevCell], false, {debug, "keep"}));
    const LstmState next =
        in_place ? state
                 : LstmState{graph.clone(state.output, debug), graph.clone(state.cellState, debug)};
    popops::mapWithOutput(graph, _1 * _2 + _3 * _4,
                          {state.cellState, units[kForget], units[kInput], units[kCandidate]},
                          next.cellState, prog, {debug, "cellState"});
    const bool fused = !keep.valid() && internal::kernelActivation(params.activation) >= 0;
    if (fused) {
      popops::mapWithOutput(graph, internal::activated(params.activation, _1) * _2,
                            {next.cellState, units[kOutput]}, next.output, prog, {debug, "output"});
      return next;
    }
    const Tensor tanh = keep.valid() ? keep[kTanh] : graph.clone(next.cellState, debug);
    prog.add(Copy(next.cellState, tanh, false, {debug, "tanh"}));
    nonLinearityInPlace(graph, params.activation, tanh, prog, {debug, "tanh"});
    popops::mapWithOutput(graph, _1 * _2, {units[kOutput], tanh}, next.output, prog,
                          {debug, "output"});
    return next;
  }

  Sequence step(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                const rnn::RnnSlice& slice, const DebugContext& debug) const {
    Sequence loop(debug);
    const Tensor keep = slice.interimOut;
    const Tensor to = keep.valid() ? keep.slice(0, 4)
                                   : rnn::createInitialState(graph, params.rnn, true, 4, 1, debug);
    units(graph, slice.inputs[0], state.output, to, loop, debug);
    const LstmState made = next(graph, state, to, keep, !flags.valid(), loop, debug);
    if (flags.valid())
      popops::internal::mapWithOutputs(
          graph, {_1 * _5 + _2 * _6, _3 * _5 + _4 * _6},
          {state.output, made.output, state.cellState, made.cellState,
           internal::column(flags.inverse), internal::column(flags.mask)},
          {state.output, state.cellState}, loop, {debug, "next"});
    return loop;
  }
};

/// The layer in steps of its own: the output, and the last cell state.
std::pair<Tensor, Tensor> composed(Graph& graph, const LstmParams& params,
                                   const LstmState& stateInit, const Tensor& in,
                                   const LstmWeights& weights, Tensor* intermediates,
                                   Sequence& prog, const DebugContext& debugContext,
                                   const internal::RecurrentOptions& parsed, PlanningCache* cache) {
  const bool ahead = parsed.preCalcWeights && params.doInputWeightCalc;
  const Forward layer{params, weights, ahead, parsed.matmul, cache};
  const Tensor inputs = ahead ? layer.weighInputs(graph, in, prog, debugContext) : in;
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return layer.step(g, flags, {state[0][0], state[1][0]}, slice, {dnai});
  };
  rnn::StateSequence sequence{Tensor(), 0};
  if (params.outputFullSequence)
    sequence.output = rnn::createOutputTensor(graph, params.rnn, 1, {debugContext, "output"});
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
  orderOf(params);  // throws where the cell order is none
  const auto matrix = [&](std::size_t rows, std::size_t in, const char* name) {
    return internal::createMatrix(graph, params.rnn.dataType, rows, in, 4 * s.O,
                                  {debugContext, name}, parsed.matmul, cache);
  };
  if (parsed.preCalcWeights && params.doInputWeightCalc)
    return {internal::asUnits(matrix(s.T * s.B, s.I, "inputWeights"), 4),
            internal::asUnits(matrix(s.B, s.O, "outputWeights"), 4)};
  const Tensor both = matrix(s.B, s.I + s.O, "weights");
  return {internal::asUnits(both.slice(0, s.I), 4),
          internal::asUnits(both.slice(s.I, s.I + s.O), 4)};
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
