#pragma once
#include <cstdint>

namespace ipujax::engine::ctc {

/// The loss of one sequence. The log-probabilities or logits of step t, and its gradients, start
/// at t * stride, one value per class.
struct Problem {
  std::int64_t steps, labels, classes, stride;
  const float* data;
  bool are_logits;
  const std::uint32_t* label;
  std::uint32_t blank;
  bool with_softmax;  ///< gradients are those of logits
  float* loss;
  float* gradient;  ///< of the steps; null if not wanted
};

/// Computes the loss by summing probabilities in double, scaled by powers of two (Rabiner, A
/// Tutorial on Hidden Markov Models, 1989, V.A). Returns false if the range of doubles does not
/// suffice; the gradient is then invalid.
bool lossByProbabilities(const Problem& problem);

}  // namespace ipujax::engine::ctc
