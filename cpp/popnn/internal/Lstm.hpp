#pragma once
#include <vector>

#include "popnn/Lstm.hpp"
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

/// Where the units forget, input, output and candidate stand: the gates lie side by side here.
inline std::vector<unsigned> orderOf(const LstmParams& params) {
  const auto at =
      internal::positions({params.cellOrder.begin(), params.cellOrder.end()}, 4, "lstm");
  return {at[BASIC_LSTM_CELL_FORGET_GATE], at[BASIC_LSTM_CELL_INPUT_GATE],
          at[BASIC_LSTM_CELL_OUTPUT_GATE], at[BASIC_LSTM_CELL_CANDIDATE]};
}

/// What the forward pass keeps of a step, in [6][batch][output size].
enum Kept { kForget, kInput, kOutput, kCandidate, kTanh, kPrevCell, kNumKept };

inline poplar::Tensor weightMatrix(const LstmParams& params, const LstmWeights& weights,
                                   bool with_input) {
  const auto order = orderOf(params);
  const poplar::Tensor output = internal::asMatrix(weights.outputWeights, order);
  return with_input ? poplar::concat(internal::asMatrix(weights.inputWeights, order), output)
                    : output;
}

}  // namespace popnn::lstm
