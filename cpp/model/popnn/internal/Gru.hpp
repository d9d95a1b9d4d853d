#pragma once
#include <vector>

#include "popnn/Gru.hpp"
#include "popnn/internal/Fused.hpp"
#include "popnn/internal/Recurrent.hpp"

namespace popnn::gru {

/// The sizes of a layer: steps T, batch B, input I, output O.
struct Sizes {
  explicit Sizes(const GruParams& params)
      : T(params.rnn.maxTimeSteps),
        B(params.rnn.batchSize),
        I(params.rnn.layerSizes.at(0)),
        O(params.rnn.layerSizes.at(1)) {}
  std::size_t T, B, I, O;
};

/// The positions of the units reset, update and candidate.
inline std::vector<unsigned> orderOf(const GruParams& params) {
  return internal::positions({params.cellOrder.begin(), params.cellOrder.end()}, 3, "gru");
}

/// What the forward pass keeps of a step, in [4 or 5][batch][output size]; kMemory, h U + b' of
/// the candidate, only with resetAfter.
enum Kept { kReset, kUpdate, kCandidate, kBefore, kMemory };
inline unsigned numKept(const GruParams& params) { return params.resetAfter ? 5 : 4; }

/// The weights as matrices: of both gates [I + O][2 * O] and of the candidate [I + O][O].
struct Matrices {
  Matrices(const GruParams& params, const GruWeights& weights) {
    const auto order = orderOf(params);
    const poplar::Tensor all = poplar::concat(internal::asMatrix(weights.inputWeights, order),
                                              internal::asMatrix(weights.outputWeights, order));
    const std::size_t n = Sizes(params).O;
    gates = all.slice(0, 2 * n, 1);
    candidate = all.slice(2 * n, 3 * n, 1);
  }
  /// Copies, mapped as the products of a step expect, as they are or transposed: once, not in every
  /// step.
  Matrices laidOut(poplar::Graph& graph, const GruParams& params, bool transposed,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                   const poplar::OptionFlags& options, poplin::PlanningCache* cache) const {
    const auto copy = [&](const poplar::Tensor& matrix) {
      const poplar::Tensor from = transposed ? matrix.transpose() : matrix;
      const poplar::Tensor to =
          internal::createMatrix(graph, params.rnn.dataType, Sizes(params).B, from.dim(0),
                                 from.dim(1), {debug, "weights"}, options, cache);
      prog.add(poplar::program::Copy(from, to, false, {debug, "weights"}));
      return transposed ? to.transpose() : to;
    };
    Matrices made = *this;
    if (together) {
      const poplar::Tensor whole = copy(all());
      const std::size_t n = Sizes(params).O;
      made.gates = whole.slice(0, 2 * n, 1);
      made.candidate = whole.slice(2 * n, 3 * n, 1);
      return made;
    }
    made.gates = copy(gates);
    made.candidate = copy(candidate);
    return made;
  }
  /// Those of outputs alone, [O][2 * O] and [O][O]. If the reset gate is applied after it, one
  /// product of a step takes both together.
  Matrices ofOutputs(const GruParams& params) const {
    const Sizes s(params);
    Matrices made = *this;
    made.gates = gates.slice(s.I, s.I + s.O);
    made.candidate = candidate.slice(s.I, s.I + s.O);
    made.together = params.resetAfter;
    return made;
  }
  /// The matrix of both gates and the candidate.
  poplar::Tensor all() const { return poplar::concat(gates, candidate, 1); }
  poplar::Tensor gates, candidate;
  bool together = false;
};

inline GruParams withSteps(const GruParams& params, const poplar::Tensor& steps) {
  GruParams changed = params;
  changed.rnn.varTimeSteps = steps;
  return changed;
}

/// The attributes that kernels of both directions have; attention and limits are read last.
inline void describe(internal::FusedStep& step, const GruParams& params,
                     const poplar::Tensor* attention) {
  const auto order = orderOf(params);
  step.attributes()
      .set("at", ipujax::engine::Attributes::Integers(order.begin(), order.end()))
      .set("gate", std::int64_t{internal::kernelActivation(params.recurrentActivation)})
      .set("activation", std::int64_t{internal::kernelActivation(params.activation)})
      .set("full", std::int64_t{params.outputFullSequence})
      .set("limited", std::int64_t{params.rnn.variableTimeSteps()})
      .set("after", std::int64_t{params.resetAfter})
      .set("attends", std::int64_t{attention != nullptr});
  if (attention != nullptr) step.reads(*attention);
  if (params.rnn.variableTimeSteps()) step.reads(params.rnn.varTimeSteps.flatten());
}
inline bool hasKernel(const poplar::Graph& graph, const GruParams& params,
                      const internal::RecurrentOptions& options) {
  return internal::hasKernel(graph, params.rnn, options, params.activation,
                             params.recurrentActivation);
}

}  // namespace popnn::gru
