#include <algorithm>

#include "popnn/Lstm.hpp"
#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Lstm.hpp"
#include "popnn/internal/StepLoop.hpp"
#include "popops/ElementWise.hpp"
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
  bool ahead;  ///< whether inputs are already weighted, with biases
  OptionFlags options;
  PlanningCache* cache;
  std::vector<unsigned> order = orderOf(params);
  std::size_t n = Sizes(params).O;
  Tensor sums{};  ///< of the product, which each step overwrites

  /// Whether a step's activations have expressions, so that one compute set follows its product.
  bool fused() const {
    return internal::kernelActivation(params.activation) >= 0 &&
           internal::kernelActivation(params.recurrentActivation) >= 0;
  }

  /// x W + b of all steps, [T][4][B][O], mapped as the state.
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

  /// The units' sums [batch][4 * output size], without biases and inputs that are already weighted.
  const Tensor& weigh(Graph& graph, const Tensor& input, const Tensor& output, Sequence& prog,
                      const DebugContext& debug) {
    const bool with_input = params.doInputWeightCalc && !ahead;
    const Tensor a = with_input ? poplar::concat(input, output, 1) : output,
                 b = weightMatrix(weights, with_input);
    if (sums.valid())
      poplin::matMulWithOutput(graph, a, b, sums, prog, {debug, "weigh"}, options, cache);
    else
      sums = poplin::matMul(graph, a, b, prog, {debug, "weigh"}, options, cache);
    return sums;
  }

  /// Adds to `terms` the two tensors whose sum is the argument of a unit's activation.
  void addTerms(const Tensor& input, unsigned unit, std::vector<Tensor>& terms) const {
    const std::size_t at = order[unit];
    terms.push_back(sums.slice(at * n, (at + 1) * n, 1));
    terms.push_back(ahead ? input[at] : weights.biases[at].expand({0}));
  }
  pe::Any unit(unsigned which) const {
    const auto type = which == kCandidate ? params.activation : params.recurrentActivation;
    return internal::activated(
        type, pe::Any(pe::PlaceHolder(2 * which + 1) + pe::PlaceHolder(2 * which + 2)));
  }

  /// Updates the state in place, in one compute set after the product, and also writes the output
  /// to `sequence` if valid. `keep` is as in `next`. With flags, sequences past their end keep the
  /// state.
  void fusedStep(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                 const Tensor& input, const Tensor& sequence, const Tensor& keep, Sequence& prog,
                 const DebugContext& debug) {
    weigh(graph, input, state.output, prog, debug);
    std::vector<Tensor> terms, results{state.cellState, state.output};
    for (unsigned unit = 0; unit < 4; ++unit) addTerms(input, unit, terms);
    terms.push_back(state.cellState);
    const pe::Any before{pe::PlaceHolder(9)};
    const pe::Any forget = unit(kForget), in = unit(kInput), out = unit(kOutput),
                  candidate = unit(kCandidate);
    const pe::Any cell(forget * before + in * candidate),
        tanh = internal::activated(params.activation, cell);
    std::vector<pe::Expr> expressions{cell, pe::Any(out * tanh)};
    if (flags.valid()) {
      for (const Tensor& t :
           {state.output, internal::column(flags.inverse), internal::column(flags.mask)})
        terms.push_back(t);
      const pe::PlaceHolder output(10), inverse(11), mask(12);
      expressions = {pe::Any(before * inverse + cell * mask),
                     pe::Any(output * inverse + out * tanh * mask)};
    }
    if (sequence.valid()) {
      expressions.push_back(expressions[1]);
      results.push_back(sequence);
    }
    if (keep.valid()) {
      for (const pe::Any& each : {forget, in, out, candidate, tanh, before})
        expressions.push_back(each);
      for (unsigned i = 0; i < kNumKept; ++i) results.push_back(keep[i]);
    }
    popops::internal::mapWithOutputs(graph, expressions, terms, results, prog, {debug, "step"});
  }

  /// The gates and the candidate of a step, in [4][batch][output size], for activations without an
  /// expression.
  void units(Graph& graph, const Tensor& input, const Tensor& output, const Tensor& to,
             Sequence& prog, const DebugContext& debug) {
    weigh(graph, input, output, prog, debug);
    std::vector<pe::Expr> expressions;
    std::vector<Tensor> terms, results;
    for (unsigned unit = 0; unit < 4; ++unit) {
      addTerms(input, unit, terms);
      expressions.push_back(pe::Any(pe::PlaceHolder(2 * unit + 1) + pe::PlaceHolder(2 * unit + 2)));
      results.push_back(to[unit]);
    }
    popops::internal::mapWithOutputs(graph, expressions, terms, results, prog, {debug, "units"});
    nonLinearityInPlace(graph, params.recurrentActivation, to.slice(0, 3), prog, {debug, "gates"});
    nonLinearityInPlace(graph, params.activation, to[kCandidate], prog, {debug, "candidate"});
  }

  /// The next state; also writes the kept values to `keep` [6][batch][output size], if valid.
  LstmState next(Graph& graph, const LstmState& state, const Tensor& units, const Tensor& keep,
                 bool in_place, Sequence& prog, const DebugContext& debug) const {
    if (keep.valid()) prog.add(Copy(state.cellState, keep[kPrevCell], false, {debug, "keep"}));
    const LstmState next =
        in_place ? state
                 : LstmState{graph.clone(state.output, debug), graph.clone(state.cellState, debug)};
    popops::mapWithOutput(graph, _1 * _2 + _3 * _4,
                          {state.cellState, units[kForget], units[kInput], units[kCandidate]},
                          next.cellState, prog, {debug, "cellState"});
    const Tensor tanh = keep.valid() ? keep[kTanh] : graph.clone(next.cellState, debug);
    prog.add(Copy(next.cellState, tanh, false, {debug, "tanh"}));
    nonLinearityInPlace(graph, params.activation, tanh, prog, {debug, "tanh"});
    popops::mapWithOutput(graph, _1 * _2, {units[kOutput], tanh}, next.output, prog,
                          {debug, "output"});
    return next;
  }

  Sequence step(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const LstmState& state,
                const rnn::RnnSlice& slice, const DebugContext& debug) {
    Sequence loop(debug);
    const Tensor keep = slice.interimOut;
    if (fused()) {
      fusedStep(graph, flags, state, slice.inputs[0], {}, keep, loop, debug);
      return loop;
    }
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

/// The sequences of a loop; kept values, and the outputs if all are wanted, come last.
struct Sequences {
  Tensor inputs, kept, outputs;
};

/// The most elements of a tensor on one tile.
std::size_t mostOnATile(const Graph& graph, const Tensor& t) {
  std::size_t most = 0;
  for (const auto& intervals : graph.getTileMapping(t)) {
    std::size_t elements = 0;
    for (const auto& each : intervals) elements += each.size();
    most = std::max(most, elements);
  }
  return most;
}

/// A tensor [batch][output size] mapped where a step's product reads the previous output, if that
/// divides it differently from `usual`, where sequences lie, and the rest of a step takes no longer
/// there; else an invalid tensor.
Tensor placeForProduct(Graph& graph, const Forward& layer, const Tensor& usual,
                       const DebugContext& debug) {
  const LstmParams& params = layer.params;
  if (params.doInputWeightCalc && !layer.ahead) return {};  // it also reads the input
  const auto& type = params.rnn.dataType;
  const Tensor read = poplin::createMatMulInputLHS(
      graph, type, usual.shape(), {layer.n, 4 * layer.n}, debug, layer.options, layer.cache);
  const auto& target = graph.getTarget();
  const std::size_t one_turn = target.getNumWorkerContexts() * target.getVectorWidth(type);
  const std::size_t there = mostOnATile(graph, read), now = mostOnATile(graph, usual);
  return there != now && there <= std::max(now, one_turn) ? read : Tensor();
}

/// Runs turns of several steps.
LstmState inTurns(Graph& graph, Forward& layer, const LstmState& begin, const Sequences& sequences,
                  Sequence& prog, const DebugContext& debug) {
  const Tensor usual =
      rnn::createInitialState(graph, layer.params.rnn, true, 1, 1, {debug, "state"})[0];
  const Tensor place = placeForProduct(graph, layer, usual, {debug, "state"});
  const Tensor output = place.valid() ? place : usual;
  const LstmState state{output, graph.clone(output, {debug, "state"})};
  prog.add(Copy(begin.output, state.output, false, {debug, "state"}));
  prog.add(Copy(begin.cellState, state.cellState, false, {debug, "state"}));
  internal::StepTensors all{{sequences.inputs}, {}};
  for (const Tensor& t : {sequences.kept, sequences.outputs})
    if (t.valid()) all.outputs.push_back(t);
  const auto body = [&](Sequence& loop, std::vector<Tensor>&, const internal::StepTensors& step) {
    const Tensor outputs = sequences.outputs.valid() ? step.outputs.back() : Tensor();
    const Tensor keep = sequences.kept.valid() ? step.outputs[0] : Tensor();
    layer.fusedStep(graph, {}, state, step.inputs[0], outputs, keep, loop, debug);
  };
  internal::runSteps(graph, layer.params.rnn.maxTimeSteps, false, {}, all, place, prog, body,
                     debug);
  return state;
}

/// Runs one step after another, with limits.
LstmState byStep(Graph& graph, Forward& layer, const LstmState& begin, const Sequences& sequences,
                 Sequence& prog, const DebugContext& debug) {
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return layer.step(g, flags, {state[0][0], state[1][0]}, slice, {dnai});
  };
  OptionFlags none;
  Tensor kept = sequences.kept;
  const auto last = rnn::Rnn(graph, layer.params.rnn, false,
                             {begin.output.expand({0}), begin.cellState.expand({0})},
                             {sequences.outputs, 0}, {sequences.inputs}, nullptr,
                             kept.valid() ? &kept : nullptr, {}, {}, prog, step, 1, none, debug);
  return {last[0][0], last[1][0]};
}

/// The layer as separate steps: the output, and the last cell state.
std::pair<Tensor, Tensor> composed(Graph& graph, const LstmParams& params,
                                   const LstmState& stateInit, const Tensor& in,
                                   const LstmWeights& weights, Tensor* intermediates,
                                   Sequence& prog, const DebugContext& debugContext,
                                   const internal::RecurrentOptions& parsed, PlanningCache* cache) {
  const bool ahead = parsed.preCalcWeights && params.doInputWeightCalc;
  Forward layer{params, weights, ahead, parsed.matmul, cache};
  Sequences sequences{ahead ? layer.weighInputs(graph, in, prog, debugContext) : in, {}, {}};
  if (params.outputFullSequence)
    sequences.outputs = rnn::createOutputTensor(graph, params.rnn, 1, {debugContext, "output"});
  if (intermediates != nullptr)
    sequences.kept = *intermediates =
        rnn::createOutputTensor(graph, params.rnn, kNumKept, 1, {debugContext, "intermediates"})
            .reshapePartial(0, 1, {params.rnn.maxTimeSteps, kNumKept});
  const auto run = params.rnn.variableTimeSteps() || !layer.fused() ? byStep : inTurns;
  const LstmState last = run(graph, layer, stateInit, sequences, prog, {debugContext, "lstmFwd"});
  return {params.outputFullSequence ? sequences.outputs : last.output, last.cellState};
}

}  // namespace

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
