#include "popnn/Lstm.hpp"
#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Lstm.hpp"
#include "popops/ElementWise.hpp"
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

/// The gradients of the four units of a step, [batch][4 * output size], and of the cell state.
struct StepGradients {
  Tensor units, cell;
};
StepGradients backwardStep(Graph& graph, const LstmParams& params, const Tensor& kept,
                           const Tensor& outputGrad, const Tensor& cellGrad, Sequence& prog,
                           const DebugContext& debug) {
  const auto slope = [&](NonLinearityType type, const Tensor& act, const Tensor& grad) {
    return nonLinearityInputGradient(graph, type, act, grad, prog, {debug, "activation"});
  };
  const auto gate = params.recurrentActivation, act = params.activation;
  const Tensor tanhGrad = popops::mul(graph, outputGrad, kept[kOutput], prog, {debug, "tanhGrad"});
  const Tensor cell =
      popops::add(graph, cellGrad, slope(act, kept[kTanh], tanhGrad), prog, {debug, "cellGrad"});
  const auto times = [&](const Tensor& a, const Tensor& b) {
    return popops::mul(graph, a, b, prog, {debug, "gateGrad"});
  };
  const Tensor gates = poplar::concat(
      {times(cell, kept[kPrevCell]), times(cell, kept[kCandidate]), times(outputGrad, kept[kTanh])},
      1);
  const Tensor values = poplar::concat({kept[kForget], kept[kInput], kept[kOutput]}, 1);
  const Tensor units = poplar::concat(slope(gate, values, gates),
                                      slope(act, kept[kCandidate], times(cell, kept[kInput])), 1);
  return {units, times(cell, kept[kForget])};
}

/// What a step back has beside its tensors.
struct Backward {
  const LstmParams& params;
  const LstmWeights& weights;
  bool inputs, units;  ///< whether their gradients are kept
  OptionFlags options;
  PlanningCache* cache;

  /// The state's gradients become those of the step before.
  Sequence step(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                const rnn::RnnSlice& slice, const DebugContext& debug) const {
    Sequence loop(debug);
    const Sizes s(params);
    const Tensor h = state.output, c = state.cellState;
    const Tensor grad = params.outputFullSequence
                            ? popops::add(graph, h, slice.inputs[0], loop, {debug, "grad"})
                            : h;
    const auto grads = backwardStep(graph, params, slice.interimIn, grad, c, loop, debug);
    if (flags.valid())
      popops::mulInPlace(graph, grads.units, internal::column(flags.mask), loop, {debug, "masked"});
    const Tensor matrix = weightMatrix(params, weights, inputs);
    const Tensor back = poplin::matMul(graph, grads.units, matrix.transpose(), loop,
                                       {debug, "back"}, options, cache);
    std::size_t out = 0;
    if (inputs)
      loop.add(Copy(back.slice(0, s.I, 1), slice.outputs[out++][0], false, {debug, "inputGrad"}));
    if (units) loop.add(Copy(grads.units, slice.outputs[out][0], false, {debug, "unitGrads"}));
    const std::size_t at = inputs ? s.I : 0;
    advance(graph, flags, state, {back.slice(at, at + s.O, 1), grads.cell}, loop, debug);
    return loop;
  }

  /// Sequences behind their end hand the gradients on.
  static void advance(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                      const LstmState& next, Sequence& loop, const DebugContext& debug) {
    if (!flags.valid()) {
      loop.add(Copy(poplar::concat(next.output, next.cellState, 1),
                    poplar::concat(state.output, state.cellState, 1), false, {debug, "next"}));
      return;
    }
    const Tensor mask = internal::column(flags.mask), inverse = internal::column(flags.inverse);
    popops::mapInPlace(graph, _1 * _3 + _2, {state.output, next.output, inverse}, loop,
                       {debug, "next"});
    popops::mapInPlace(graph, _1 * _3 + _2 * _4, {state.cellState, next.cellState, inverse, mask},
                       loop, {debug, "next"});
  }
};

/// The way back in steps of its own; `cellGrad` may be null.
LstmState composed(Graph& graph, const LstmParams& params, Sequence& prog,
                   const LstmState& fwdStateInit, const Tensor& fwdIntermediates,
                   const Tensor& outputGrad, const Tensor* lastCellStateGrad, Tensor* inputGrad,
                   Tensor* bwdIntermediates, const Backward& backward,
                   const DebugContext& debugContext) {
  const Tensor h = graph.clone(fwdStateInit.output, {debugContext, "outputGrad"}),
               c = graph.clone(fwdStateInit.cellState, {debugContext, "cellStateGrad"});
  const auto begin = [&](const Tensor* from, const Tensor& to) {
    if (from != nullptr)
      prog.add(Copy(*from, to, false, {debugContext, "begin"}));
    else
      popops::zero(graph, to, prog, {debugContext, "begin"});
  };
  begin(params.outputFullSequence ? nullptr : &outputGrad, h);
  begin(lastCellStateGrad, c);
  std::vector<Tensor> inputs, outputs;
  if (params.outputFullSequence) inputs.push_back(outputGrad);
  const auto keep = [&](Tensor* sequence, std::size_t size) {
    *sequence = rnn::createRecurrentTensor(graph, params.rnn, static_cast<unsigned>(size), 1,
                                           {debugContext, "grads"});
    outputs.push_back(*sequence);
  };
  const Sizes s(params);
  if (backward.inputs) keep(inputGrad, s.I);
  if (backward.units) keep(bwdIntermediates, 4 * s.O);
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return backward.step(g, flags, {state[0][0], state[1][0]}, slice, {dnai});
  };
  OptionFlags none;
  const auto first = rnn::Rnn(graph, params.rnn, true, {h.expand({0}), c.expand({0})},
                              {Tensor(), 0}, inputs, &fwdIntermediates, nullptr, outputs, {}, prog,
                              step, 1, none, {debugContext, "lstmBwd"});
  return {first[0][0], first[1][0]};
}

}  // namespace

LstmState lstmBwd(Graph& graph, const LstmParams& params, Sequence& prog,
                  const LstmState& fwdStateInit, const Tensor& fwdIntermediates,
                  const LstmWeights& weights, const Tensor&, const Tensor&,
                  const Tensor& outputGrad, const Tensor* lastCellStateGrad, Tensor* inputGrad,
                  Tensor* bwdIntermediates, const DebugContext& debugContext,
                  const OptionFlags& options, PlanningCache* cache) {
  internal::checkGradient(params.activation, "lstm");
  internal::checkGradient(params.recurrentActivation, "lstm");
  const internal::RecurrentOptions parsed(options, "lstm");
  const bool inputs = inputGrad != nullptr && params.calcInputGradients;
  const Backward backward{params,        weights, inputs, bwdIntermediates != nullptr,
                          parsed.matmul, cache};
  if (!hasKernel(graph, params, parsed))
    return composed(graph, params, prog, fwdStateInit, fwdIntermediates, outputGrad,
                    lastCellStateGrad, inputGrad, bwdIntermediates, backward, debugContext);
  internal::FusedStep step(graph);
  const LstmState first = step.compose([&](Sequence& program) {
    return composed(graph, params, program, fwdStateInit, fwdIntermediates, outputGrad,
                    lastCellStateGrad, inputGrad, bwdIntermediates, backward, debugContext);
  });
  Tensor cell = lastCellStateGrad != nullptr ? *lastCellStateGrad : Tensor();
  if (!cell.valid()) cell = internal::zerosLike(graph, fwdStateInit.cellState, debugContext);
  Tensor units = bwdIntermediates != nullptr ? *bwdIntermediates : Tensor();
  const Sizes s(params);
  if (!units.valid())
    units = rnn::createRecurrentTensor(graph, params.rnn, static_cast<unsigned>(4 * s.O), 1,
                                       {debugContext, "grads"});
  step.reads(fwdIntermediates.reshape({s.T, kNumKept, s.B, s.O}));
  step.reads(weights.inputWeights, false).reads(weights.outputWeights, false);
  step.reads(outputGrad).reads(cell);
  describe(step, params);
  step.writes(first.output).writes(first.cellState).writes(units);
  step.attributes().set("inputs", std::int64_t{inputs});
  if (inputs) step.writes(*inputGrad);
  step.emit("popnn.lstm_backward", prog, {debugContext, "lstmBwd"});
  return first;
}

LstmWeights lstmWU(Graph& graph, const LstmParams& params, Sequence& prog,
                   const LstmState& fwdStateInit, const Tensor& fwdIntermediates,
                   const Tensor& bwdIntermediates, const LstmWeights&, const Tensor& input,
                   const Tensor&, const DebugContext& debugContext, const OptionFlags& options,
                   PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "lstm");
  const Sizes s(params);
  const auto order = orderOf(params);
  const auto kept = [&](Kept which) { return fwdIntermediates.slice(which, which + 1, 1); };
  const Tensor outputs =
      popops::mul(graph, kept(kOutput), kept(kTanh), prog, {debugContext, "outputs"}).squeeze({1});
  const Tensor before = rnn::shiftRnnTensor(graph, params.rnn, outputs, fwdStateInit.output, prog,
                                            1, {debugContext, "outputsBefore"});
  const auto rows = [&](const Tensor& t) { return t.reshape({s.T * s.B, t.dim(2)}); };
  const Tensor grads = rows(bwdIntermediates);
  const Tensor matrix =
      poplin::matMul(graph, poplar::concat(rows(input), rows(before), 1).transpose(), grads, prog,
                     {debugContext, "weights"}, parsed.matmul, cache);
  const Tensor biases =
      popops::reduce(graph, grads, {0}, popops::Operation::ADD, prog, {debugContext, "biases"});
  return {internal::asUnits(matrix.slice(0, s.I), order),
          internal::asUnits(matrix.slice(s.I, s.I + s.O), order),
          internal::unordered(biases.reshape({4, s.O}), order)};
}

LstmState lstmBwdWithWU(Graph& graph, const LstmParams& params, Sequence& prog,
                        const LstmState& fwdStateInit, const Tensor& fwdIntermediates,
                        const LstmWeights& weights, const Tensor& input, const Tensor& output,
                        const Tensor& outputGrad, const Tensor* lastCellStateGrad,
                        Tensor* inputGrad, LstmWeights& weightsGrad,
                        const DebugContext& debugContext, const OptionFlags& options,
                        PlanningCache* cache) {
  Tensor units;
  const LstmState state =
      lstmBwd(graph, params, prog, fwdStateInit, fwdIntermediates, weights, input, output,
              outputGrad, lastCellStateGrad, inputGrad, &units, debugContext, options, cache);
  weightsGrad = lstmWU(graph, params, prog, fwdStateInit, fwdIntermediates, units, weights, input,
                       output, debugContext, options, cache);
  return state;
}

}  // namespace popnn::lstm
