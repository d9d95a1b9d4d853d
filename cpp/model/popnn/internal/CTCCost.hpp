#pragma once
#include <cstdint>

#include "engine/Cost.hpp"
#include "poplar/Graph.hpp"

/// Costs of CTC losses, by the estimates of PopLibs' own vertices and planner (CTCLossPlan.cpp and
/// PerformanceEstimation.hpp of its popnn). Alpha runs forwards from the first step and beta
/// backwards from the last, at the same time. Where they meet, each continues over the other's
/// half, now with the gradient.
namespace popnn::internal {

struct CtcSizes {
  std::uint64_t time, batch, classes, labels;
  bool gradient;  ///< whether computed; if not, alpha and beta end where they meet
};

/// The numbers of parts of batch, labels and time: a tile for each combination.
struct CtcPartition {
  std::uint64_t batch = 1, labels = 1, time = 1;
  std::uint64_t tiles() const { return batch * labels * time; }
};

/// Cycles of a worker for one step of a part of the labels, each with the blank before it; the last
/// part may have one blank more. For both blank and label: alpha reads 3 values, writes 1, and the
/// gradient reads 1 and writes 2 more; each adds and multiplies logarithms.
constexpr std::uint64_t ctcStepCycles(std::uint64_t labels, bool extra_blank, bool gradient) {
  constexpr std::uint64_t kLogarithms = 16 + 1, kRepeatedLabel = 2;
  const std::uint64_t alpha = 2 * (1 + 3) + 2 * kLogarithms + kRepeatedLabel,
                      rest = 2 * (2 + 1) + 2 * kLogarithms, blank = extra_blank ? kLogarithms : 0;
  return gradient ? labels * (alpha + rest) + 2 * blank : labels * alpha + blank;
}

/// The partition of the fewest cycles whose temporaries take 0.6 of a tile's memory or less; if
/// there is none, that of the least memory.
CtcPartition ctcPartition(const poplar::Target& target, const CtcSizes& sizes);

/// The cost of losses of log-probabilities in FLOAT and, if requested, of their gradient;
/// `softmax`: it is that of logits. In addition to what PopLibs' planner counts, tiles receive
/// their steps of the data, and gradients of parts of labels are added.
ipujax::engine::Cost ctcLossCost(const poplar::Target& target, const CtcSizes& sizes, bool softmax);

}  // namespace popnn::internal
