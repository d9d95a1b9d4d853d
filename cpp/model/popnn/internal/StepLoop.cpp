#include "popnn/internal/StepLoop.hpp"

#include "popops/ElementWise.hpp"
#include "popops/Fill.hpp"
#include "popops/internal/DynamicSlice.hpp"

namespace popnn::internal {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;

std::vector<Tensor> at(const std::vector<Tensor>& sequences, std::size_t step) {
  std::vector<Tensor> found;
  for (const Tensor& t : sequences) found.push_back(t[step]);
  return found;
}

/// A variable of the shape of `steps` [..., batch][size], with each step's elements on the same
/// tiles as those of `place` [batch][size].
Tensor alongside(Graph& graph, const Tensor& place, const Tensor& steps,
                 const DebugContext& debug) {
  const std::size_t each = steps.numElements() / place.numElements();
  const Tensor t =
      graph.addVariable(steps.elementType(), {place.dim(0), place.dim(1), each}, debug);
  auto mapping = graph.getTileMapping(place);
  for (auto& intervals : mapping)
    for (auto& interval : intervals) interval = {interval.begin() * each, interval.end() * each};
  graph.setTileMapping(t, mapping);
  return t.dimShuffle({2, 0, 1}).reshape(steps.shape());
}

/// The steps of a loop, in turns.
class Turns {
 public:
  Turns(Graph& graph, std::size_t steps, bool reverse, const StepTensors& sequences,
        const Tensor& place, const StepBody& body, const DebugContext& debug)
      : graph_(graph),
        steps_(steps),
        per_turn_(stepsPerTurn(steps)),
        reverse_(reverse),
        sequences_(sequences),
        place_(place),
        body_(body),
        debug_(debug) {}

  void run(std::vector<Tensor>& states, Sequence& prog) {
    const std::size_t turns = steps_ / per_turn_ > 1 ? steps_ / per_turn_ : 0;
    const std::size_t rest = steps_ - turns * per_turn_;
    if (turns > 0) addLoop(turns, states, prog);
    addSteps(sequences_, reverse_ ? 0 : steps_ - rest, rest, states, prog);
  }

 private:
  /// Adds steps [begin, begin + n) of the given sequences.
  void addSteps(const StepTensors& sequences, std::size_t begin, std::size_t n,
                std::vector<Tensor>& states, Sequence& prog) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t step = reverse_ ? begin + n - 1 - i : begin + i;
      body_(prog, states, {at(sequences.inputs, step), at(sequences.outputs, step)});
    }
  }

  void addLoop(std::size_t turns, const std::vector<Tensor>& states, Sequence& prog) {
    const Tensor counter = graph_.addVariable(poplar::UNSIGNED_INT, {1}, {debug_, "counter"});
    graph_.setTileMapping(counter, 0);
    const std::size_t first = reverse_ ? steps_ - per_turn_ : 0;
    popops::fill(graph_, counter, prog, static_cast<unsigned>(first), {debug_, "first"});
    Sequence turn(debug_);
    StepTensors part;
    for (const Tensor& t : sequences_.inputs) {
      Tensor slice = partOf(t);
      popops::internal::clampedSliceWithOutput(graph_, slice, t, counter, {0}, {per_turn_}, turn,
                                               {debug_, "slice"});
      part.inputs.push_back(moved(slice, placed(slice), turn));
    }
    std::vector<Tensor> updates;
    for (const Tensor& t : sequences_.outputs) {
      updates.push_back(partOf(t));
      part.outputs.push_back(placed(updates.back()));
    }
    auto last = states;
    addSteps(part, 0, per_turn_, last, turn);
    for (std::size_t i = 0; i < updates.size(); ++i)
      popops::internal::clampedUpdate(graph_, sequences_.outputs[i],
                                      moved(part.outputs[i], updates[i], turn), counter, {0},
                                      {per_turn_}, turn, {debug_, "update"});
    for (std::size_t i = 0; i < states.size(); ++i) moved(last[i], states[i], turn);
    const auto step = static_cast<unsigned>(per_turn_);
    if (reverse_)
      popops::subInPlace(graph_, counter, step, turn, {debug_, "previous"});
    else
      popops::addInPlace(graph_, counter, step, turn, {debug_, "next"});
    prog.add(poplar::program::Repeat(static_cast<unsigned>(turns), turn, debug_));
  }

  /// Copies `from` to `to` unless they are the same; returns `to`.
  Tensor moved(const Tensor& from, const Tensor& to, Sequence& turn) {
    if (from != to) turn.add(Copy(from, to, false, {debug_, "moved"}));
    return to;
  }

  /// Where the steps of a turn are read and written: `part`, or a variable with place_'s elements.
  Tensor placed(const Tensor& part) {
    return place_.valid() ? alongside(graph_, place_, part, {debug_, "placed"}) : part;
  }

  /// A variable mapped as the steps of a turn.
  Tensor partOf(const Tensor& sequence) {
    return graph_.clone(sequence.slice(0, per_turn_), {debug_, "steps"},
                        poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
  }

  Graph& graph_;
  std::size_t steps_, per_turn_;
  bool reverse_;
  const StepTensors& sequences_;
  Tensor place_;
  const StepBody& body_;
  DebugContext debug_;
};

}  // namespace

std::size_t stepsPerTurn(std::size_t steps) {
  for (std::size_t n = kMostStepsPerTurn; n > kMostStepsPerTurn / 2; --n)
    if (steps % n == 0) return n;
  return kMostStepsPerTurn;
}

std::vector<Tensor> runSteps(Graph& graph, std::size_t steps, bool reverse,
                             const std::vector<Tensor>& states, const StepTensors& sequences,
                             const Tensor& place, Sequence& prog, const StepBody& body,
                             const DebugContext& debug) {
  auto last = states;
  Turns(graph, steps, reverse, sequences, place, body, debug).run(last, prog);
  return last;
}

}  // namespace popnn::internal
