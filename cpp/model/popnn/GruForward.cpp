#include <map>
#include <string>

#include "popnn/Gru.hpp"
#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Gru.hpp"
#include "popnn/internal/StepLoop.hpp"
#include "popops/ElementWise.hpp"
#include "popops/internal/Map.hpp"

namespace popnn::gru {
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

/// Tensors of a map's expressions, in the order of their placeholders.
struct Terms {
  pe::Any add(const Tensor& t) {
    tensors.push_back(t);
    return pe::Any(pe::PlaceHolder(static_cast<unsigned>(tensors.size())));
  }
  std::vector<Tensor> tensors;
};
/// A map's expressions, and where their values go.
struct Outputs {
  void add(const pe::Any& expression, const Tensor& to) {
    expressions.push_back(expression);
    tensors.push_back(to);
  }
  void map(Graph& graph, const Terms& terms, Sequence& prog, const DebugContext& debug) const {
    popops::internal::mapWithOutputs(graph, expressions, terms.tensors, tensors, prog, debug);
  }
  std::vector<pe::Expr> expressions;
  std::vector<Tensor> tensors;
};

/// What a step reads and writes: its input, or the weighted input of each unit; the previous output
/// and the tensor for the next; attention, kept values and flags, if valid.
struct Step {
  Tensor x, h, to, attention, keep;
  rnn::RnnBatchwiseFlags flags{};
};

/// Whether the activations have expressions.
bool isFused(const GruParams& params) {
  return internal::kernelActivation(params.activation) >= 0 &&
         internal::kernelActivation(params.recurrentActivation) >= 0;
}

/// What a step uses besides its tensors.
struct Forward {
  const GruParams& params;
  bool ahead;         ///< whether inputs are already weighted, with biases of inputs and gates
  Matrices matrices;  ///< of outputs alone if inputs are already weighted
  Tensor biases;      ///< reset, update, candidate
  OptionFlags options;
  PlanningCache* cache;
  std::map<std::string, Tensor> made{};  ///< variables that each step overwrites, by name

  Tensor product(Graph& graph, const Tensor& a, const Tensor& b, Sequence& prog,
                 const DebugContext& debug) const {
    return poplin::matMul(graph, a, b, prog, {debug, "weigh"}, options, cache);
  }

  Tensor bias(unsigned begin, unsigned end, unsigned which) const {
    const Tensor units = biases.slice(begin, end);
    return (params.resetAfter ? units.slice(which, which + 1, 1) : units).flatten().expand({0});
  }

  /// The product of a step; later ones overwrite the variable of the first.
  Tensor product(Graph& graph, const char* name, const Tensor& a, const Tensor& b, Sequence& prog,
                 const DebugContext& debug) {
    Tensor& sums = made[name];
    if (sums.valid())
      poplin::matMulWithOutput(graph, a, b, sums, prog, {debug, name}, options, cache);
    else
      sums = poplin::matMul(graph, a, b, prog, {debug, name}, options, cache);
    return sums;
  }
  /// A variable [batch][output size], mapped as the state.
  Tensor variable(Graph& graph, const char* name, const DebugContext& debug) {
    Tensor& t = made[name];
    if (!t.valid()) t = rnn::createInitialState(graph, params.rnn, true, 1, 1, {debug, name})[0];
    return t;
  }

  /// The argument of a unit's activation: the product's columns plus weighted inputs or biases.
  pe::Any sum(Terms& terms, const Tensor& sums, std::size_t at, unsigned unit,
              const Tensor& x) const {
    const std::size_t n = Sizes(params).O;
    pe::Any found = terms.add(sums.slice(at * n, (at + 1) * n, 1));
    if (ahead) return pe::Any(found + terms.add(x[unit]));
    found = pe::Any(found + terms.add(bias(unit, unit + 1, 0)));
    const bool two = params.resetAfter && unit != kCandidate;
    return two ? pe::Any(found + terms.add(bias(unit, unit + 1, 1))) : found;
  }
  pe::Any gate(const pe::Any& sum) const {
    return internal::activated(params.recurrentActivation, sum);
  }

  /// Writes a step's output to `step.to`, and the kept values, in one compute set after each
  /// product.
  void fusedStep(Graph& graph, const Step& step, Sequence& prog, const DebugContext& debug) {
    Terms terms;
    Outputs outputs;
    const pe::Any h = terms.add(step.h);
    const Tensor from = ahead ? step.h : poplar::concat(step.x, step.h, 1);
    if (params.resetAfter && ahead) {
      const Tensor sums = product(graph, "units", step.h, matrices.all(), prog, debug);
      const pe::Any reset = gate(sum(terms, sums, 0, kReset, step.x)),
                    update = gate(sum(terms, sums, 1, kUpdate, step.x));
      const std::size_t n = Sizes(params).O;
      const pe::Any memory(terms.add(sums.slice(2 * n, 3 * n, 1)) + terms.add(bias(2, 3, 1)));
      finishAfter(graph, step, terms, {h, reset, update, memory}, terms.add(step.x[kCandidate]),
                  prog, debug);
      return;
    }
    const Tensor sums = product(graph, "gates", from, matrices.gates, prog, debug);
    const pe::Any reset = gate(sum(terms, sums, 0, kReset, step.x)),
                  update = gate(sum(terms, sums, 1, kUpdate, step.x));
    if (params.resetAfter) {
      const std::size_t in = Sizes(params).I;
      const Tensor& weights = matrices.candidate;
      const Tensor inner =
          product(graph, "memory", step.h, weights.slice(in, weights.dim(0)), prog, debug);
      const pe::Any memory(terms.add(inner) + terms.add(bias(2, 3, 1)));
      const Tensor given = product(graph, "input", step.x, weights.slice(0, in), prog, debug);
      const pe::Any input(terms.add(given) + terms.add(bias(2, 3, 0)));
      finishAfter(graph, step, terms, {h, reset, update, memory}, input, prog, debug);
      return;
    }
    const Tensor after = variable(graph, "afterReset", debug),
                 kept = step.keep.valid() ? step.keep[kUpdate] : variable(graph, "update", debug);
    outputs.add(pe::Any(reset * h), after);
    outputs.add(update, kept);
    if (step.keep.valid()) {
      outputs.add(reset, step.keep[kReset]);
      outputs.add(h, step.keep[kBefore]);
    }
    outputs.map(graph, terms, prog, {debug, "gates"});
    const Tensor candidates =
        product(graph, "candidate", ahead ? after : poplar::concat(step.x, after, 1),
                matrices.candidate, prog, debug);
    Terms rest;
    const pe::Any before = rest.add(step.h), share = rest.add(kept);
    finish(graph, step, rest, before, share, sum(rest, candidates, 0, kCandidate, step.x), {}, prog,
           debug);
  }

  struct Gates {
    pe::Any h, reset, update, memory;
  };
  /// Finishes a step with the reset gate after the product.
  void finishAfter(Graph& graph, const Step& step, Terms& terms, const Gates& gates,
                   const pe::Any& input, Sequence& prog, const DebugContext& debug) const {
    Outputs outputs;
    if (step.keep.valid()) {
      outputs.add(gates.reset, step.keep[kReset]);
      outputs.add(gates.update, step.keep[kUpdate]);
      outputs.add(gates.h, step.keep[kBefore]);
      outputs.add(gates.memory, step.keep[kMemory]);
    }
    finish(graph, step, terms, gates.h, gates.update, pe::Any(input + gates.reset * gates.memory),
           outputs, prog, debug);
  }

  void finish(Graph& graph, const Step& step, Terms& terms, const pe::Any& h, const pe::Any& update,
              const pe::Any& candidate_sum, Outputs outputs, Sequence& prog,
              const DebugContext& debug) const {
    const pe::Any candidate = internal::activated(params.activation, candidate_sum);
    pe::Any share = update;
    if (step.attention.valid()) share = pe::Any(update - update * terms.add(step.attention));
    pe::Any next(share * h + (pe::Const(1.0f) - share) * candidate);
    if (step.flags.valid()) {
      const pe::Any inverse = terms.add(internal::column(step.flags.inverse)),
                    mask = terms.add(internal::column(step.flags.mask));
      next = pe::Any(h * inverse + next * mask);
    }
    outputs.add(next, step.to);
    if (step.keep.valid()) outputs.add(candidate, step.keep[kCandidate]);
    outputs.map(graph, terms, prog, {debug, "output"});
  }

  // Activations without an expression, as separate steps
  // ------------------------------------

  /// Sets units, [batch][output size] each, to activations of sums.
  void activate(Graph& graph, NonLinearityType type, const std::vector<pe::Any>& sums,
                const std::vector<Tensor>& terms, const std::vector<Tensor>& units, Sequence& prog,
                const DebugContext& debug) const {
    const std::vector<pe::Expr> expressions(sums.begin(), sums.end());
    popops::internal::mapWithOutputs(graph, expressions, terms, units, prog, debug);
    for (const Tensor& unit : units) nonLinearityInPlace(graph, type, unit, prog, debug);
  }

  /// The reset and update gates.
  void gates(Graph& graph, const Tensor& x, const Tensor& h, const Tensor& to, Sequence& prog,
             const DebugContext& debug) const {
    const std::size_t n = Sizes(params).O;
    const Tensor sums = product(graph, poplar::concat(x, h, 1), matrices.gates, prog, debug);
    std::vector<Tensor> terms;
    for (const unsigned unit : {kReset, kUpdate}) {
      terms.push_back(sums.slice(unit * n, (unit + 1) * n, 1));
      terms.push_back(bias(unit, unit + 1, 0));
      if (params.resetAfter) terms.push_back(bias(unit, unit + 1, 1));
    }
    const std::vector<pe::Any> expressions =
        params.resetAfter
            ? std::vector<pe::Any>{pe::Any(_1 + _2 + _3), pe::Any(_4 + pe::_5 + pe::_6)}
            : std::vector<pe::Any>{pe::Any(_1 + _2), pe::Any(_3 + _4)};
    activate(graph, params.recurrentActivation, expressions, terms, {to[kReset], to[kUpdate]}, prog,
             {debug, "gates"});
  }

  /// The candidate and, with resetAfter, the memory.
  void candidate(Graph& graph, const Tensor& x, const Tensor& h, const Tensor& to, Sequence& prog,
                 const DebugContext& debug) const {
    const std::size_t n = Sizes(params).I;
    std::vector<Tensor> terms;
    pe::Any sum(_1 + _2);
    if (params.resetAfter) {
      const Tensor& weights = matrices.candidate;
      popops::mapWithOutput(
          graph, _1 + _2,
          {product(graph, h, weights.slice(n, weights.dim(0)), prog, debug), bias(2, 3, 1)},
          to[kMemory], prog, {debug, "memory"});
      terms = {product(graph, x, weights.slice(0, n), prog, debug), bias(2, 3, 0), to[kReset],
               to[kMemory]};
      sum = pe::Any(_1 + _2 + _3 * _4);
    } else {
      const Tensor after = popops::mul(graph, to[kReset], h, prog, {debug, "reset"});
      terms = {product(graph, poplar::concat(x, after, 1), matrices.candidate, prog, debug),
               bias(2, 3, 0)};
    }
    activate(graph, params.activation, {sum}, terms, {to[kCandidate]}, prog, {debug, "candidate"});
  }

  Sequence step(Graph& graph, const rnn::RnnBatchwiseFlags& flags, const Tensor& h,
                const rnn::RnnSlice& slice, const DebugContext& debug) {
    Sequence loop(debug);
    const Tensor& x = slice.inputs[0];
    if (isFused(params)) {
      const Tensor attention = slice.inputs.size() > 1 ? slice.inputs[1] : Tensor();
      fusedStep(graph, {x, h, h, attention, slice.interimOut, flags}, loop, debug);
      return loop;
    }
    const Tensor to = slice.interimOut.valid()
                          ? slice.interimOut
                          : rnn::createInitialState(graph, params.rnn, true, numKept(params), 1,
                                                    {debug, "units"});
    gates(graph, x, h, to, loop, debug);
    candidate(graph, x, h, to, loop, debug);
    if (slice.interimOut.valid()) loop.add(Copy(h, to[kBefore], false, {debug, "keep"}));
    std::vector<Tensor> terms{h, to[kUpdate], to[kCandidate]};
    pe::Any share(_2);
    if (slice.inputs.size() > 1) {
      terms.push_back(slice.inputs[1]);
      share = pe::Any(_2 - _2 * _4);
    }
    pe::Any next(share * _1 + (pe::Const(1.0f) - share) * _3);
    if (flags.valid()) {
      const auto at = static_cast<unsigned>(terms.size());
      terms.push_back(internal::column(flags.inverse));
      terms.push_back(internal::column(flags.mask));
      next = pe::Any(_1 * pe::PlaceHolder(at + 1) + next * pe::PlaceHolder(at + 2));
    }
    popops::mapInPlace(graph, next, terms, loop, {debug, "output"});
    return loop;
  }
};

/// x W plus biases, including those of the gates, of all steps: [T][3][B][O], mapped as the state.
Tensor weighInputs(Graph& graph, const GruParams& params, const GruWeights& weights,
                   const Tensor& in, Sequence& prog, const DebugContext& debug,
                   const OptionFlags& matmul, PlanningCache* cache) {
  const Sizes s(params);
  const auto order = orderOf(params);
  const Tensor sums =
      poplin::matMul(graph, in.reshape({s.T * s.B, s.I}), internal::asMatrix(weights.inputWeights),
                     prog, {debug, "weighInputs"}, matmul, cache);
  Tensor biases = internal::ordered(weights.biases, order);
  if (params.resetAfter) {
    const Tensor of_inputs = biases.slice(0, 1, 1).squeeze({1}),
                 of_outputs = biases.slice(1, 2, 1).squeeze({1});
    const Tensor gates =
        popops::add(graph, of_inputs.slice(0, 2), of_outputs.slice(0, 2), prog, {debug, "biases"});
    biases = poplar::concat(gates, of_inputs.slice(2, 3));
  }
  const Tensor units =
      internal::ordered(sums.reshape({s.T, s.B, 3, s.O}).dimShuffle({2, 0, 1, 3}), order);
  const Tensor placed = rnn::createOutputTensor(graph, params.rnn, 3, 1, {debug, "weighted"})
                            .reshapePartial(0, 1, {s.T, 3});
  popops::mapWithOutput(graph, _1 + _2,
                        {units.dimShuffle({1, 0, 2, 3}), biases.expand({0}).expand({2})}, placed,
                        prog, {debug, "addBiases"});
  return placed;
}

/// The sequences of a loop; kept values, and the outputs if all are wanted, come last.
struct Sequences {
  std::vector<Tensor> inputs;
  Tensor kept, outputs;
};

/// Runs turns of several steps; returns the last output.
Tensor inTurns(Graph& graph, Forward& layer, const Tensor& begin, const Sequences& sequences,
               Sequence& prog, const DebugContext& debug) {
  const Tensor first =
      rnn::createInitialState(graph, layer.params.rnn, true, 1, 1, {debug, "state"})[0];
  prog.add(Copy(begin, first, false, {debug, "state"}));
  internal::StepTensors all{sequences.inputs, {}};
  for (const Tensor& t : {sequences.kept, sequences.outputs})
    if (t.valid()) all.outputs.push_back(t);
  const auto body = [&](Sequence& loop, std::vector<Tensor>& state,
                        const internal::StepTensors& step) {
    const Tensor h = state[0];
    if (sequences.outputs.valid()) state[0] = step.outputs.back();
    layer.fusedStep(
        graph,
        {step.inputs[0], h, state[0], step.inputs.size() > 1 ? step.inputs[1] : Tensor(),
         sequences.kept.valid() ? step.outputs[0] : Tensor()},
        loop, debug);
  };
  return internal::runSteps(graph, layer.params.rnn.maxTimeSteps, false, {first}, all, {}, prog,
                            body, debug)[0];
}

/// Runs one step after another, with limits.
Tensor byStep(Graph& graph, Forward& layer, const Tensor& begin, const Sequences& sequences,
              Sequence& prog, const DebugContext& debug) {
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return layer.step(g, flags, state[0][0], slice, {dnai});
  };
  OptionFlags none;
  Tensor kept = sequences.kept;
  return rnn::Rnn(graph, layer.params.rnn, false, {begin.expand({0})}, {sequences.outputs, 0},
                  sequences.inputs, nullptr, kept.valid() ? &kept : nullptr, {}, {}, prog, step, 1,
                  none, debug)[0][0];
}

/// The layer as separate steps.
Tensor composed(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
                const GruWeights& weights, Tensor* intermediates, const Tensor* attention,
                Sequence& prog, const DebugContext& debug, const internal::RecurrentOptions& parsed,
                PlanningCache* cache) {
  const bool ahead = parsed.preCalcWeights && isFused(params);
  Matrices given(params, weights);
  if (ahead) given = given.ofOutputs(params);
  Forward layer{params,
                ahead,
                given.laidOut(graph, params, false, prog, debug, parsed.matmul, cache),
                internal::ordered(weights.biases, orderOf(params)),
                parsed.matmul,
                cache};
  Sequences sequences;
  sequences.inputs.push_back(
      ahead ? weighInputs(graph, params, weights, in, prog, debug, parsed.matmul, cache) : in);
  if (attention != nullptr) sequences.inputs.push_back(attention->transpose().expand({2}));
  if (params.outputFullSequence)
    sequences.outputs = rnn::createOutputTensor(graph, params.rnn, 1, {debug, "output"});
  if (intermediates != nullptr)
    sequences.kept = *intermediates =
        rnn::createOutputTensor(graph, params.rnn, numKept(params), 1, {debug, "intermediates"})
            .reshapePartial(0, 1, {params.rnn.maxTimeSteps, numKept(params)});
  const auto run = params.rnn.variableTimeSteps() || !isFused(params) ? byStep : inTurns;
  const Tensor last = run(graph, layer, stateInit, sequences, prog, {debug, "gruFwd"});
  return params.outputFullSequence ? sequences.outputs : last;
}

Tensor forward(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
               const GruWeights& weights, Tensor* intermediates, const Tensor* attention,
               Sequence& prog, const DebugContext& debug, const OptionFlags& options,
               PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "gru");
  const auto compose = [&](Sequence& program) {
    return composed(graph, params, stateInit, in, weights, intermediates, attention, program, debug,
                    parsed, cache);
  };
  if (!hasKernel(graph, params, parsed)) return compose(prog);
  internal::FusedStep step(graph);
  const Tensor output = step.compose(compose);
  step.reads(in).reads(weights.inputWeights, false).reads(weights.outputWeights, false);
  step.reads(weights.biases).reads(stateInit);
  describe(step, params, attention);
  step.writes(output);
  step.attributes().set("keeps", std::int64_t{intermediates != nullptr});
  if (intermediates != nullptr) step.writes(*intermediates);
  step.emit("popnn.gru_forward", prog, {debug, "gruFwd"});
  return output;
}

}  // namespace

Tensor gruFwd(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
              const GruWeights& weights, Tensor* intermediates, Sequence& fwdProg,
              const DebugContext& debugContext, const OptionFlags& options,
              PlanningCache* planningCache) {
  return forward(graph, params, stateInit, in, weights, intermediates, nullptr, fwdProg,
                 debugContext, options, planningCache);
}

Tensor gruFwd(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
              const Tensor& realTimeSteps, const GruWeights& weights, Tensor* intermediates,
              Sequence& fwdProg, const DebugContext& debugContext, const OptionFlags& options,
              PlanningCache* planningCache) {
  return forward(graph, withSteps(params, realTimeSteps), stateInit, in, weights, intermediates,
                 nullptr, fwdProg, debugContext, options, planningCache);
}

Tensor auGruFwd(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
                const GruWeights& weights, Tensor* intermediates, const Tensor& attScores,
                Sequence& fwdProg, const DebugContext& debugContext, const OptionFlags& options,
                PlanningCache* planningCache) {
  return forward(graph, params, stateInit, in, weights, intermediates, &attScores, fwdProg,
                 debugContext, options, planningCache);
}

Tensor auGruFwd(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
                const Tensor& realTimeSteps, const GruWeights& weights, Tensor* intermediates,
                const Tensor& attScores, Sequence& fwdProg, const DebugContext& debugContext,
                const OptionFlags& options, PlanningCache* planningCache) {
  return forward(graph, withSteps(params, realTimeSteps), stateInit, in, weights, intermediates,
                 &attScores, fwdProg, debugContext, options, planningCache);
}

}  // namespace popnn::gru
