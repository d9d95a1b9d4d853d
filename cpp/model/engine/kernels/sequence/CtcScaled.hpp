#pragma once
#include <cstdint>

namespace ipujax::engine::ctc {

/// The loss of one sequence. Log-probabilities or logits, and gradients, of step t are at
/// t * stride, a value for each of the C classes.
struct Problem {
  std::int64_t steps, labels, classes, stride;
  const float* data;
  bool are_logits;
  const std::uint32_t* label;
  std::uint32_t blank;
  bool with_softmax;  ///< gradients are those of logits
  float* loss;
  float* gradient;  ///< of the steps; or null where it is not wanted
};

/// By sums of probabilities in double, scaled by powers of two (Rabiner, A Tutorial on Hidden
/// Markov Models, 1989, V.A). Where the range of doubles does not suffice it returns false; then
/// nothing of the gradient is what it should be.
bool lossByProbabilities(const Problem& problem);

}  // namespace ipujax::engine::ctc
