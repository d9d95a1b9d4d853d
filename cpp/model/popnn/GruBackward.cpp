#include "popnn/Gru.hpp"
#include "popnn/internal/Gru.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "popops/Zero.hpp"

namespace popnn::gru {
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
using popops::expr::Const;

struct Attention {
  const Tensor* scores = nullptr;  ///< [B][T]
  Tensor* gradients = nullptr;
};

/// What a backward step uses besides its tensors.
struct Backward {
  const GruParams& params;
  Matrices matrices;
  bool inputs, units;  ///< whether their gradients are kept
  OptionFlags options;
  PlanningCache* cache;

  Tensor product(Graph& graph, const Tensor& a, const Tensor& b, Sequence& prog,
                 const DebugContext& debug) const {
    return poplin::matMul(graph, a, b, prog, {debug, "back"}, options, cache);
  }

  /// The gradients of the units, [B][3 or 4 * O] (reset, update, candidate, memory), of the input
  /// and output [B][I + O] and of the attention [B].
  struct Gradients {
    Tensor units, inputAndOutput, attention;
  };
  Gradients gradients(Graph& graph, const Tensor& kept, const Tensor& grad, const Tensor& attention,
                      Sequence& prog, const DebugContext& debug) const {
    const std::size_t n = Sizes(params).I;
    const auto map = [&](const popops::expr::Expr& expression, const std::vector<Tensor>& ts) {
      return popops::map(graph, expression, ts, prog, {debug, "gradient"});
    };
    const Tensor share =
        attention.valid() ? map(_1 - _1 * _2, {kept[kUpdate], attention}) : kept[kUpdate];
    const Tensor shareGrad = map(_1 * (_2 - _3), {grad, kept[kBefore], kept[kCandidate]});
    const Tensor candidate =
        internal::gradientFromResult(graph, params.activation, kept[kCandidate],
                                     map(_1 - _1 * _2, {grad, share}), prog, {debug, "candidate"});
    Gradients found;
    Tensor resetGrad, fromCandidate, direct, memory;
    if (params.resetAfter) {
      resetGrad = map(_1 * _2, {candidate, kept[kMemory]});
      memory = map(_1 * _2, {candidate, kept[kReset]});
      const Tensor weights = matrices.candidate.transpose();
      fromCandidate = poplar::concat(
          product(graph, candidate, weights.slice(0, n, 1), prog, debug),
          product(graph, memory, weights.slice(n, weights.dim(1), 1), prog, debug), 1);
    } else {
      fromCandidate = product(graph, candidate, matrices.candidate.transpose(), prog, debug);
      const Tensor after = fromCandidate.slice(n, fromCandidate.dim(1), 1);
      resetGrad = map(_1 * _2, {after, kept[kBefore]});
      popops::mulInPlace(graph, after, kept[kReset], prog, {debug, "reset"});
    }
    Tensor updateGrad = shareGrad;
    if (attention.valid()) {
      updateGrad = map(_1 - _1 * _2, {shareGrad, attention});
      const Tensor products = map(-(_1 * _2), {shareGrad, kept[kUpdate]});
      found.attention =
          popops::reduce(graph, products, {1}, popops::Operation::ADD, prog, {debug, "attention"});
    }
    // One row for each gate of a sequence, since a softmax covers one gate.
    const auto rows = [&](const Tensor& a, const Tensor& b) {
      return poplar::concat(a, b, 1).reshape({2 * a.dim(0), a.dim(1)});
    };
    const Tensor gates = internal::gradientFromResult(
                             graph, params.recurrentActivation, rows(kept[kReset], kept[kUpdate]),
                             rows(resetGrad, updateGrad), prog, {debug, "gates"})
                             .reshape({kept.dim(1), 2 * kept.dim(2)});
    found.inputAndOutput = product(graph, gates, matrices.gates.transpose(), prog, debug);
    popops::addInPlace(graph, found.inputAndOutput, fromCandidate, prog, {debug, "sum"});
    direct = found.inputAndOutput.slice(n, found.inputAndOutput.dim(1), 1);
    popops::mapInPlace(graph, _1 + _2 * _3, {direct, grad, share}, prog, {debug, "sum"});
    found.units = memory.valid() ? poplar::concat({gates, candidate, memory}, 1)
                                 : poplar::concat(gates, candidate, 1);
    return found;
  }

  /// Turns the gradient h of the state into that of the step before.
  Sequence step(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const Tensor& h,
                const rnn::RnnSlice& slice, const DebugContext& debug) const {
    Sequence loop(debug);
    const std::size_t n = Sizes(params).I;
    std::size_t in = 0, out = 0;
    const Tensor grad = params.outputFullSequence
                            ? popops::add(graph, h, slice.inputs[in++], loop, {debug, "grad"})
                            : h;
    const Tensor attention = in < slice.inputs.size() ? slice.inputs[in] : Tensor();
    const Gradients found = gradients(graph, slice.interimIn, grad, attention, loop, debug);
    const auto keep = [&](const Tensor& t) {
      const Tensor& to = slice.outputs[out++][0];
      if (flags.valid())
        popops::mapWithOutput(graph, _1 * _2, {t, internal::column(flags.mask)}, to, loop,
                              {debug, "keep"});
      else
        loop.add(Copy(t, to, false, {debug, "keep"}));
    };
    if (inputs) keep(found.inputAndOutput.slice(0, n, 1));
    if (units) keep(found.units);
    if (out < slice.outputs.size()) keep(found.attention.expand({1}));
    const Tensor next = found.inputAndOutput.slice(n, found.inputAndOutput.dim(1), 1);
    if (flags.valid())
      popops::mapInPlace(graph, _1 * _3 + _2 * _4,
                         {h, next, internal::column(flags.inverse), internal::column(flags.mask)},
                         loop, {debug, "next"});
    else
      loop.add(Copy(next, h, false, {debug, "next"}));
    return loop;
  }
};

/// The backward pass as separate steps.
Tensor composed(Graph& graph, const GruParams& params, Sequence& prog, const Tensor& stateInit,
                const Tensor& fwdIntermediates, const Tensor& outputGrad, Tensor* inputGrad,
                Tensor* bwdIntermediates, const Attention& attention, const Backward& layer,
                const DebugContext& debug) {
  const Tensor h = graph.clone(stateInit, {debug, "outputGrad"});
  std::vector<Tensor> inputs, outputs;
  if (params.outputFullSequence) {
    popops::zero(graph, h, prog, {debug, "outputGrad"});
    inputs.push_back(outputGrad);
  } else {
    prog.add(Copy(outputGrad, h, false, {debug, "outputGrad"}));
  }
  if (attention.scores != nullptr) inputs.push_back(attention.scores->transpose().expand({2}));
  const auto keep = [&](std::size_t size) {
    outputs.push_back(rnn::createRecurrentTensor(graph, params.rnn, static_cast<unsigned>(size), 1,
                                                 {debug, "grads"}));
    return outputs.back();
  };
  const Sizes s(params);
  if (layer.inputs) *inputGrad = keep(s.I);
  if (layer.units) *bwdIntermediates = keep((params.resetAfter ? 4 : 3) * s.O);
  if (attention.gradients != nullptr) *attention.gradients = keep(1).squeeze({2}).transpose();
  Backward laid_out = layer;
  laid_out.matrices =
      layer.matrices.laidOut(graph, params, true, prog, debug, layer.options, layer.cache);
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return laid_out.step(g, flags, state[0][0], slice, {dnai});
  };
  OptionFlags none;
  return rnn::Rnn(graph, params.rnn, true, {h.expand({0})}, {Tensor(), 0}, inputs,
                  &fwdIntermediates, nullptr, outputs, {}, prog, step, 1, none,
                  {debug, "gruBwd"})[0][0];
}

Tensor backward(Graph& graph, const GruParams& params, Sequence& prog, const Tensor& stateInit,
                const Tensor& fwdIntermediates, const GruWeights& weights, const Tensor& outputGrad,
                Tensor* inputGrad, Tensor* bwdIntermediates, Attention attention,
                const DebugContext& debug, const OptionFlags& options, PlanningCache* cache) {
  internal::checkGradient(params.activation, "gru");
  internal::checkGradient(params.recurrentActivation, "gru");
  const internal::RecurrentOptions parsed(options, "gru");
  const bool inputs = inputGrad != nullptr && params.calcInputGradients;
  const Backward layer{
      params, Matrices(params, weights), inputs, bwdIntermediates != nullptr, parsed.matmul, cache};
  Tensor attentionGrad, units;
  if (attention.scores != nullptr && attention.gradients == nullptr)
    attention.gradients = &attentionGrad;
  const auto compose = [&](Sequence& program) {
    return composed(graph, params, program, stateInit, fwdIntermediates, outputGrad, inputGrad,
                    bwdIntermediates, attention, layer, debug);
  };
  if (!hasKernel(graph, params, parsed)) return compose(prog);
  internal::FusedStep step(graph);
  const Tensor first = step.compose(compose);
  const Sizes s(params);
  units = bwdIntermediates != nullptr
              ? *bwdIntermediates
              : rnn::createRecurrentTensor(graph, params.rnn,
                                           static_cast<unsigned>((params.resetAfter ? 4 : 3) * s.O),
                                           1, {debug, "grads"});
  step.reads(fwdIntermediates.reshape({s.T, numKept(params), s.B, s.O}));
  step.reads(weights.inputWeights, false).reads(weights.outputWeights, false).reads(outputGrad);
  describe(step, params, attention.scores);
  step.writes(first).writes(units);
  step.attributes().set("inputs", std::int64_t{inputs});
  if (inputs) step.writes(*inputGrad);
  if (attention.scores != nullptr) step.writes(attention.gradients->transpose());
  step.emit("popnn.gru_backward", prog, {debug, "gruBwd"});
  return first;
}

}  // namespace

GruWeights gruWU(Graph& graph, const GruParams& params, Sequence& prog, const Tensor&,
                 const Tensor& fwdIntermediates, const Tensor& bwdIntermediates, const GruWeights&,
                 const Tensor& input, const Tensor&, const DebugContext& debugContext,
                 const OptionFlags& options, PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "gru");
  const Sizes s(params);
  const auto order = orderOf(params);
  const auto rows = [&](const Tensor& t) {
    return t.reshape({s.T * s.B, t.numElements() / (s.T * s.B)});
  };
  const auto kept = [&](Kept which) { return rows(fwdIntermediates.slice(which, which + 1, 1)); };
  const auto product = [&](const Tensor& a, const Tensor& b) {
    return poplin::matMul(graph, a.transpose(), b, prog, {debugContext, "weights"}, parsed.matmul,
                          cache);
  };
  const Tensor grads = rows(bwdIntermediates), x = rows(input), before = kept(kBefore);
  const Tensor gates = grads.slice(0, 2 * s.O, 1), candidate = grads.slice(2 * s.O, 3 * s.O, 1);
  const Tensor after = params.resetAfter ? before
                                         : popops::mul(graph, before, kept(kReset), prog,
                                                       {debugContext, "afterReset"});
  const Tensor afterGrads = params.resetAfter ? grads.slice(3 * s.O, 4 * s.O, 1) : candidate;
  const Tensor inputWeights = product(x, grads.slice(0, 3 * s.O, 1));
  const Tensor outputWeights =
      poplar::concat(product(before, gates), product(after, afterGrads), 1);
  const Tensor sums =
      popops::reduce(graph, grads, {0}, popops::Operation::ADD, prog, {debugContext, "biases"})
          .reshape({grads.dim(1) / s.O, s.O});
  Tensor biases = sums;
  if (params.resetAfter)
    biases = poplar::concat(sums.slice(0, 3).expand({1}),
                            poplar::concat(sums.slice(0, 2), sums.slice(3, 4)).expand({1}), 1);
  return {internal::asUnits(inputWeights, order), internal::asUnits(outputWeights, order),
          internal::unordered(biases, order)};
}

Tensor gruBwd(Graph& graph, const GruParams& params, Sequence& prog, const Tensor& fwdOutputInit,
              const Tensor& fwdIntermediates, const GruWeights& weights, const Tensor&,
              const Tensor&, const Tensor& outputGrad, Tensor* inputGrad, Tensor* bwdIntermediates,
              const DebugContext& debugContext, const OptionFlags& options,
              PlanningCache* planningCache) {
  return backward(graph, params, prog, fwdOutputInit, fwdIntermediates, weights, outputGrad,
                  inputGrad, bwdIntermediates, {}, debugContext, options, planningCache);
}

Tensor gruBwd(Graph& graph, const GruParams& params, Sequence& prog, const Tensor& fwdOutputInit,
              const Tensor& fwdIntermediates, const GruWeights& weights, const Tensor&,
              const Tensor& realTimeSteps, const Tensor&, const Tensor& outputGrad,
              Tensor* inputGrad, Tensor* bwdIntermediates, const DebugContext& debugContext,
              const OptionFlags& options, PlanningCache* planningCache) {
  return backward(graph, withSteps(params, realTimeSteps), prog, fwdOutputInit, fwdIntermediates,
                  weights, outputGrad, inputGrad, bwdIntermediates, {}, debugContext, options,
                  planningCache);
}

Tensor auGruBwd(Graph& graph, const GruParams& params, Sequence& prog, const Tensor& fwdOutputInit,
                const Tensor& fwdIntermediates, const GruWeights& weights, const Tensor&,
                const Tensor&, const Tensor& outputGrad, Tensor* inputGrad,
                Tensor* bwdIntermediates, const Tensor& attentions, Tensor* attentionsGrad,
                const DebugContext& debugContext, const OptionFlags& options,
                PlanningCache* planningCache) {
  return backward(graph, params, prog, fwdOutputInit, fwdIntermediates, weights, outputGrad,
                  inputGrad, bwdIntermediates, {&attentions, attentionsGrad}, debugContext, options,
                  planningCache);
}

Tensor auGruBwd(Graph& graph, const GruParams& params, Sequence& prog, const Tensor& fwdOutputInit,
                const Tensor& fwdIntermediates, const GruWeights& weights, const Tensor&,
                const Tensor& realTimeSteps, const Tensor&, const Tensor& outputGrad,
                Tensor* inputGrad, Tensor* bwdIntermediates, const Tensor& attentions,
                Tensor* attentionsGrad, const DebugContext& debugContext,
                const OptionFlags& options, PlanningCache* planningCache) {
  return backward(graph, withSteps(params, realTimeSteps), prog, fwdOutputInit, fwdIntermediates,
                  weights, outputGrad, inputGrad, bwdIntermediates, {&attentions, attentionsGrad},
                  debugContext, options, planningCache);
}

GruWeights auGruWU(Graph& graph, const GruParams& params, Sequence& prog,
                   const Tensor& fwdOutputInit, const Tensor& fwdIntermediates,
                   const Tensor& bwdIntermediates, const GruWeights& weights, const Tensor& input,
                   const Tensor& output, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache* planningCache) {
  return gruWU(graph, params, prog, fwdOutputInit, fwdIntermediates, bwdIntermediates, weights,
               input, output, debugContext, options, planningCache);
}

Tensor gruBwdWithWU(Graph& graph, const GruParams& params, Sequence& prog,
                    const Tensor& fwdOutputInit, const Tensor& fwdIntermediates,
                    const GruWeights& weights, const Tensor& input, const Tensor& output,
                    const Tensor& outputGrad, Tensor* inputGrad, GruWeights& weightsGrad,
                    const DebugContext& debugContext, const OptionFlags& options,
                    PlanningCache* planningCache) {
  Tensor units;
  const Tensor first =
      backward(graph, params, prog, fwdOutputInit, fwdIntermediates, weights, outputGrad, inputGrad,
               &units, {}, debugContext, options, planningCache);
  weightsGrad = gruWU(graph, params, prog, fwdOutputInit, fwdIntermediates, units, weights, input,
                      output, debugContext, options, planningCache);
  return first;
}

Tensor gruBwdWithWU(Graph& graph, const GruParams& params, Sequence& prog,
                    const Tensor& fwdOutputInit, const Tensor& fwdIntermediates,
                    const GruWeights& weights, const Tensor& input, const Tensor& realTimeSteps,
                    const Tensor& output, const Tensor& outputGrad, Tensor* inputGrad,
                    GruWeights& weightsGrad, const DebugContext& debugContext,
                    const OptionFlags& options, PlanningCache* planningCache) {
  Tensor units;
  const Tensor first =
      backward(graph, withSteps(params, realTimeSteps), prog, fwdOutputInit, fwdIntermediates,
               weights, outputGrad, inputGrad, &units, {}, debugContext, options, planningCache);
  weightsGrad = gruWU(graph, params, prog, fwdOutputInit, fwdIntermediates, units, weights, input,
                      output, debugContext, options, planningCache);
  return first;
}

Tensor auGruBwdWithWU(Graph& graph, const GruParams& params, Sequence& prog,
                      const Tensor& fwdOutputInit, const Tensor& fwdIntermediates,
                      const GruWeights& weights, const Tensor& input, const Tensor& output,
                      const Tensor& outputGrad, Tensor* inputGrad, GruWeights& weightsGrad,
                      const Tensor& attentions, Tensor* attentionsGrad,
                      const DebugContext& debugContext, const OptionFlags& options,
                      PlanningCache* planningCache) {
  Tensor units;
  const Tensor first =
      backward(graph, params, prog, fwdOutputInit, fwdIntermediates, weights, outputGrad, inputGrad,
               &units, {&attentions, attentionsGrad}, debugContext, options, planningCache);
  weightsGrad = gruWU(graph, params, prog, fwdOutputInit, fwdIntermediates, units, weights, input,
                      output, debugContext, options, planningCache);
  return first;
}

Tensor auGruBwdWithWU(Graph& graph, const GruParams& params, Sequence& prog,
                      const Tensor& fwdOutputInit, const Tensor& fwdIntermediates,
                      const GruWeights& weights, const Tensor& input, const Tensor& realTimeSteps,
                      const Tensor& output, const Tensor& outputGrad, Tensor* inputGrad,
                      GruWeights& weightsGrad, const Tensor& attentions, Tensor* attentionsGrad,
                      const DebugContext& debugContext, const OptionFlags& options,
                      PlanningCache* planningCache) {
  Tensor units;
  const Tensor first =
      backward(graph, withSteps(params, realTimeSteps), prog, fwdOutputInit, fwdIntermediates,
               weights, outputGrad, inputGrad, &units, {&attentions, attentionsGrad}, debugContext,
               options, planningCache);
  weightsGrad = gruWU(graph, params, prog, fwdOutputInit, fwdIntermediates, units, weights, input,
                      output, debugContext, options, planningCache);
  return first;
}

}  // namespace popnn::gru
