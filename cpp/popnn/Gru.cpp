#include "popnn/Gru.hpp"

#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Gru.hpp"
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

/// What a step has beside its tensors.
struct Forward {
  const GruParams& params;
  Matrices matrices;
  Tensor biases;  ///< reset, update, candidate
  OptionFlags options;
  PlanningCache* cache;

  Tensor product(Graph& graph, const Tensor& a, const Tensor& b, Sequence& prog,
                 const DebugContext& debug) const {
    return poplin::matMul(graph, a, b, prog, {debug, "weigh"}, options, cache);
  }

  Tensor bias(unsigned begin, unsigned end, unsigned which) const {
    const Tensor units = biases.slice(begin, end);
    return (params.resetAfter ? units.slice(which, which + 1, 1) : units).flatten().expand({0});
  }

  /// Units in [batch][output size] each: activations of sums, by one compute set where they have an
  /// expression.
  void activate(Graph& graph, NonLinearityType type, const std::vector<pe::Any>& sums,
                const std::vector<Tensor>& terms, const std::vector<Tensor>& units, Sequence& prog,
                const DebugContext& debug) const {
    const bool fused = internal::kernelActivation(type) >= 0;
    std::vector<pe::Expr> expressions;
    for (const pe::Any& sum : sums)
      expressions.push_back(fused ? internal::activated(type, sum) : sum);
    popops::internal::mapWithOutputs(graph, expressions, terms, units, prog, debug);
    for (std::size_t i = 0; !fused && i < units.size(); ++i)
      nonLinearityInPlace(graph, type, units[i], prog, debug);
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
                const rnn::RnnSlice& slice, const DebugContext& debug) const {
    Sequence loop(debug);
    const Tensor& x = slice.inputs[0];
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

/// The layer in steps of its own.
Tensor composed(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
                const GruWeights& weights, Tensor* intermediates, const Tensor* attention,
                Sequence& prog, const DebugContext& debug, const OptionFlags& matmul,
                PlanningCache* cache) {
  const Matrices given(params, weights);
  const Forward layer{params, given.laidOut(graph, params, false, prog, debug, matmul, cache),
                      internal::ordered(weights.biases, orderOf(params)), matmul, cache};
  std::vector<Tensor> inputs{in};
  if (attention != nullptr) inputs.push_back(attention->transpose().expand({2}));
  rnn::StateSequence sequence{Tensor(), 0};
  if (params.outputFullSequence)
    sequence.output = rnn::createOutputTensor(graph, params.rnn, 1, {debug, "output"});
  if (intermediates != nullptr)
    *intermediates =
        rnn::createOutputTensor(graph, params.rnn, numKept(params), 1, {debug, "intermediates"})
            .reshapePartial(0, 1, {params.rnn.maxTimeSteps, numKept(params)});
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    return layer.step(g, flags, state[0][0], slice, {dnai});
  };
  OptionFlags none;
  const auto last =
      rnn::Rnn(graph, params.rnn, false, {stateInit.expand({0})}, sequence, inputs, nullptr,
               intermediates, {}, {}, prog, step, 1, none, {debug, "gruFwd"});
  return params.outputFullSequence ? sequence.output : last[0][0];
}

Tensor forward(Graph& graph, const GruParams& params, const Tensor& stateInit, const Tensor& in,
               const GruWeights& weights, Tensor* intermediates, const Tensor* attention,
               Sequence& prog, const DebugContext& debug, const OptionFlags& options,
               PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "gru");
  const auto compose = [&](Sequence& program) {
    return composed(graph, params, stateInit, in, weights, intermediates, attention, program, debug,
                    parsed.matmul, cache);
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

const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder() {
  return {BASIC_GRU_CELL_RESET_GATE, BASIC_GRU_CELL_UPDATE_GATE, BASIC_GRU_CELL_CANDIDATE};
}

GruParams::GruParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
                     std::vector<std::size_t> layerSizes, NonLinearityType activation,
                     NonLinearityType recurrentActivation)
    : GruParams(dataType, batchSize, timeSteps, Tensor(), std::move(layerSizes), activation,
                recurrentActivation) {}

GruParams::GruParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
                     const Tensor& timeSteps, std::vector<std::size_t> layerSizes,
                     NonLinearityType activation, NonLinearityType recurrentActivation)
    : rnn(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes),
      dataType(dataType),
      batchSize(batchSize),
      timeSteps(maxTimeSteps),
      layerSizes(std::move(layerSizes)),
      activation(activation),
      recurrentActivation(recurrentActivation) {}

GruParams::GruParams(const GruParams& other) = default;

std::uint64_t getBasicGruCellFwdFlops(const GruParams& params) {
  const Sizes s(params);
  return s.T * s.B * s.O * (6 * (s.I + s.O) + 5);  // products; 3 multiplications, 2 additions
}
std::uint64_t getBasicGruCellBwdFlops(const GruParams& params) {
  const Sizes s(params);
  const std::size_t in = s.O + (params.calcInputGradients ? s.I : 0);
  return s.T * s.B * s.O * (6 * in + 10);
}
std::uint64_t getBasicGruCellWuFlops(const GruParams& params) {
  const Sizes s(params);
  return s.T * s.B * s.O * (6 * (s.I + s.O) + 3);
}

Tensor createInput(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                   const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "gru");
  return rnn::createInputTensor(graph, params.rnn, 1, debugContext);
}
Tensor createInitialState(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                          const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "gru");
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, debugContext)[0];
}

std::pair<Tensor, Tensor> createWeightsKernel(Graph& graph, const GruParams& params,
                                              const DebugContext& debugContext,
                                              const OptionFlags& options, PlanningCache* cache) {
  const internal::RecurrentOptions parsed(options, "gru");
  const Sizes s(params);
  const auto order = orderOf(params);
  const Tensor matrix = internal::createMatrix(graph, params.rnn.dataType, s.B, s.I + s.O, 3 * s.O,
                                               {debugContext, "weights"}, parsed.matmul, cache);
  return {internal::asUnits(matrix.slice(0, s.I), order),
          internal::asUnits(matrix.slice(s.I, s.I + s.O), order)};
}
Tensor createWeightsBiases(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                           const OptionFlags& options, PlanningCache*) {
  const internal::RecurrentOptions checked(options, "gru");
  std::vector<std::size_t> shape{3, Sizes(params).O};
  if (params.resetAfter) shape.insert(shape.begin() + 1, 2);
  return graph.addVariable(params.rnn.dataType, shape, poplar::VariableMappingMethod::LINEAR,
                           {debugContext, "biases"});
}
GruWeights createWeights(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                         const OptionFlags& options, PlanningCache* cache) {
  const auto [input, output] = createWeightsKernel(graph, params, debugContext, options, cache);
  return {input, output, createWeightsBiases(graph, params, debugContext, options, cache)};
}

Tensor createAttention(Graph& graph, const GruParams& params, const DebugContext& debugContext,
                       const OptionFlags& options) {
  const internal::RecurrentOptions checked(options, "gru");
  return graph.addVariable(params.rnn.dataType, {params.rnn.batchSize, params.rnn.maxTimeSteps},
                           poplar::VariableMappingMethod::LINEAR, {debugContext, "attention"});
}

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
