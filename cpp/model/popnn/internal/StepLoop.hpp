#pragma once
#include <functional>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popnn/Rnn.hpp"

namespace popnn::internal {

/// The most steps that a turn of a layer's loop runs, each with its own exchange code.
constexpr std::size_t kMostStepsPerTurn = 16;

/// Steps of a turn: a divisor of the loop's steps near kMostStepsPerTurn, or else that number.
std::size_t stepsPerTurn(std::size_t steps);

/// What a step reads and writes: a step of each sequence.
struct StepTensors {
  std::vector<poplar::Tensor> inputs, outputs;
};
/// Adds one step. It updates the states in place, or replaces them by views of the step's outputs.
using StepBody = std::function<void(poplar::program::Sequence& loop,
                                    std::vector<poplar::Tensor>& states, const StepTensors& step)>;

/// Runs the loop of a layer whose sequences have the same number of steps, T. A turn runs several,
/// whose slices of `sequences` [T, ...] are read and written at once; remaining steps follow the
/// loop. If `place` [batch][size] is valid, a turn's steps lie with its elements, else as the
/// sequences do. Returns the states after the last step, which is the first in time if `reverse`.
std::vector<poplar::Tensor> runSteps(poplar::Graph& graph, std::size_t steps, bool reverse,
                                     const std::vector<poplar::Tensor>& states,
                                     const StepTensors& sequences, const poplar::Tensor& place,
                                     poplar::program::Sequence& prog, const StepBody& body,
                                     const poplar::DebugContext& debug);

}  // namespace popnn::internal
