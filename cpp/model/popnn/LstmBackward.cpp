#include "popnn/Lstm.hpp"
#include "popnn/internal/Lstm.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
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
using pe::Any;
using pe::PlaceHolder;

/// What a backward step uses besides its tensors.
struct Backward {
  const LstmParams& params;
  const LstmWeights& weights;
  bool inputs;  ///< whether each step computes their gradients
  OptionFlags options;
  PlanningCache* cache;

  /// One step: kept values, gradients of the output and the cell state, and the mask or an invalid
  /// tensor.
  struct Step {
    Tensor kept, grad, cell, mask;
  };

  /// A gradient times the slope of an activation, as an expression of `terms`, of which number
  /// `result` is the activation's result. If the slope has no expression, earlier steps compute the
  /// product, which becomes a further term.
  static Any through(Graph& graph, NonLinearityType type, unsigned result, const Any& grad,
                     std::vector<Tensor>& terms, Sequence& loop, const DebugContext& debug) {
    if (internal::kernelActivation(type) >= 0)
      return internal::slopeTimes(type, Any(PlaceHolder(result)), grad);
    const Tensor back = popops::map(graph, grad, terms, loop, {debug, "back"});
    terms.push_back(
        internal::gradientFromResult(graph, type, terms[result - 1], back, loop, debug));
    return Any(PlaceHolder(static_cast<unsigned>(terms.size())));
  }

  /// Computes the gradient of the output, if each step has one, and that of the cell state.
  Step begin(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
             const rnn::RnnSlice& slice, Sequence& loop, const DebugContext& debug) const {
    Step step{slice.interimIn, state.output, graph.clone(state.cellState, debug), Tensor()};
    if (flags.valid()) step.mask = internal::column(flags.mask);
    std::vector<Tensor> terms{state.cellState, step.kept[kOutput], step.kept[kTanh], state.output},
        results{step.cell};
    if (params.outputFullSequence) terms.push_back(slice.inputs[0]);
    const Any grad = params.outputFullSequence ? Any(_4 + pe::_5) : Any(_4);
    const Any inner =
        through(graph, params.activation, 3, Any(grad * _2), terms, loop, {debug, "cellGrad"});
    std::vector<pe::Expr> expressions{Any(_1 + inner)};
    if (params.outputFullSequence) {
      step.grad = graph.clone(state.output, debug);
      results.push_back(step.grad);
      expressions.push_back(grad);
    }
    popops::internal::mapWithOutputs(graph, expressions, terms, results, loop, {debug, "cellGrad"});
    return step;
  }

  /// Writes the units' gradients to `units` [batch][4 * output size] in the given cell order, and
  /// the previous cell state's to `before`.
  void gates(Graph& graph, const Step& step, const Tensor& units, const Tensor& before,
             Sequence& loop, const DebugContext& debug) const {
    const auto order = orderOf(params);
    const std::size_t n = Sizes(params).O;
    std::vector<Tensor> terms{step.cell, step.grad}, results;
    for (unsigned i = 0; i < kNumKept; ++i) terms.push_back(step.kept[i]);
    if (step.mask.valid()) terms.push_back(step.mask);
    const auto kept = [](Kept which) { return Any(PlaceHolder(which + 3)); };
    const Any cell(_1), grad(_2), mask{PlaceHolder(kNumKept + 3)};
    const auto masked = [&](const Any& x) { return step.mask.valid() ? Any(x * mask) : x; };
    const auto unit = [&](Kept which, const Any& to) {
      const auto type = which == kCandidate ? params.activation : params.recurrentActivation;
      results.push_back(units.slice(order[which] * n, (order[which] + 1) * n, 1));
      return masked(through(graph, type, which + 3, to, terms, loop, {debug, "gates"}));
    };
    std::vector<pe::Expr> expressions{
        unit(kForget, Any(cell * kept(kPrevCell))), unit(kInput, Any(cell * kept(kCandidate))),
        unit(kOutput, Any(grad * kept(kTanh))), unit(kCandidate, Any(cell * kept(kInput)))};
    expressions.push_back(Any(cell * kept(kForget)));
    results.push_back(before);
    popops::internal::mapWithOutputs(graph, expressions, terms, results, loop, {debug, "gates"});
  }

  /// Turns the state's gradients into those of the step before.
  Sequence step(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                const rnn::RnnSlice& slice, const DebugContext& debug) const {
    Sequence loop(debug);
    const Sizes s(params);
    const Step now = begin(graph, flags, state, slice, loop, debug);
    const Tensor units = slice.outputs.back()[0];
    const Tensor before = flags.valid() ? graph.clone(state.cellState, debug) : state.cellState;
    gates(graph, now, units, before, loop, debug);
    const Tensor back = poplin::matMul(graph, units, weightMatrix(weights, inputs).transpose(),
                                       loop, {debug, "back"}, options, cache);
    if (inputs)
      loop.add(Copy(back.slice(0, s.I, 1), slice.outputs[0][0], false, {debug, "inputGrad"}));
    const std::size_t at = inputs ? s.I : 0;
    advance(graph, flags, state, {back.slice(at, at + s.O, 1), before}, loop, debug);
    return loop;
  }

  /// Sequences past their end pass the gradients on.
  static void advance(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                      const LstmState& next, Sequence& loop, const DebugContext& debug) {
    if (!flags.valid()) {
      loop.add(Copy(next.output, state.output, false, {debug, "next"}));
      return;
    }
    const Tensor mask = internal::column(flags.mask), inverse = internal::column(flags.inverse);
    popops::mapInPlace(graph, _1 * _3 + _2, {state.output, next.output, inverse}, loop,
                       {debug, "next"});
    popops::mapInPlace(graph, _1 * _3 + _2 * _4, {state.cellState, next.cellState, inverse, mask},
                       loop, {debug, "next"});
  }
};

/// The backward pass as separate steps; `lastCellStateGrad` may be null.
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
  const Sizes s(params);
  const auto sequence = [&](std::size_t size) {
    return rnn::createRecurrentTensor(graph, params.rnn, static_cast<unsigned>(size), 1,
                                      {debugContext, "grads"});
  };
  if (backward.inputs) outputs.push_back(*inputGrad = sequence(s.I));
  const Tensor units = sequence(4 * s.O);
  outputs.push_back(units);
  if (bwdIntermediates != nullptr) *bwdIntermediates = units;
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return backward.step(g, flags, {state[0][0], state[1][0]}, slice, {dnai});
  };
  OptionFlags none;
  const auto first = rnn::Rnn(graph, params.rnn, true, {h.expand({0}), c.expand({0})},
                              {Tensor(), 0}, inputs, &fwdIntermediates, nullptr, outputs, {}, prog,
                              step, 1, none, {debugContext, "lstmBwd"});
  if (inputGrad != nullptr && params.calcInputGradients && !backward.inputs)
    *inputGrad = poplin::matMul(graph, units.reshape({s.T * s.B, 4 * s.O}),
                                internal::asMatrix(backward.weights.inputWeights).transpose(), prog,
                                {debugContext, "inputGrad"}, backward.options, backward.cache)
                     .reshape({s.T, s.B, s.I});
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
  const Backward backward{params, weights, inputs && !parsed.preCalcWeights, parsed.matmul, cache};
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
  return {internal::asUnits(matrix.slice(0, s.I), 4),
          internal::asUnits(matrix.slice(s.I, s.I + s.O), 4), biases.reshape({4, s.O})};
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
