#pragma once
#include <vector>

#include "popnn/Lstm.hpp"
#include "popnn/internal/Fused.hpp"
#include "popnn/internal/Recurrent.hpp"

namespace popnn::lstm {

/// The sizes of a layer: steps T, batch B, input I, output O.
struct Sizes {
  explicit Sizes(const LstmParams& params)
      : T(params.rnn.maxTimeSteps),
        B(params.rnn.batchSize),
        I(params.rnn.layerSizes.at(0)),
        O(params.rnn.layerSizes.at(1)) {}
  std::size_t T, B, I, O;
};

/// The positions of the units forget, input, output and candidate; here the gates are adjacent.
inline std::vector<unsigned> orderOf(const LstmParams& params) {
  const auto at =
      internal::positions({params.cellOrder.begin(), params.cellOrder.end()}, 4, "lstm");
  return {at[BASIC_LSTM_CELL_FORGET_GATE], at[BASIC_LSTM_CELL_INPUT_GATE],
          at[BASIC_LSTM_CELL_OUTPUT_GATE], at[BASIC_LSTM_CELL_CANDIDATE]};
}

/// What the forward pass keeps of a step, in [6][batch][output size].
enum Kept { kForget, kInput, kOutput, kCandidate, kTanh, kPrevCell, kNumKept };

/// The weights of a step as one matrix, with units in the given order.
inline poplar::Tensor weightMatrix(const LstmWeights& weights, bool with_input) {
  const poplar::Tensor output = internal::asMatrix(weights.outputWeights);
  return with_input ? poplar::concat(internal::asMatrix(weights.inputWeights), output) : output;
}

/// The attributes that kernels of both directions have; the limits are read last.
inline void describe(internal::FusedStep& step, const LstmParams& params) {
  const auto order = orderOf(params);
  step.attributes()
      .set("at", ipujax::engine::Attributes::Integers(order.begin(), order.end()))
      .set("gate", std::int64_t{internal::kernelActivation(params.recurrentActivation)})
      .set("activation", std::int64_t{internal::kernelActivation(params.activation)})
      .set("full", std::int64_t{params.outputFullSequence})
      .set("limited", std::int64_t{params.rnn.variableTimeSteps()});
  if (params.rnn.variableTimeSteps()) step.reads(params.rnn.varTimeSteps.flatten());
}
inline bool hasKernel(const poplar::Graph& graph, const LstmParams& params,
                      const internal::RecurrentOptions& options) {
  return params.doInputWeightCalc &&
         internal::hasKernel(graph, params.rnn, options, params.activation,
                             params.recurrentActivation);
}

}  // namespace popnn::lstm
