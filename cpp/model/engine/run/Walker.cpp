#include "engine/run/Walker.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "engine/codelets/VertexStep.hpp"
#include "engine/expr/ExprChain.hpp"
#include "engine/loop/MakeLoop.hpp"
#include "engine/run/FloatTraps.hpp"

namespace ipujax::engine {
namespace {

/// Before a turn runs: exchanges its row's memory with the oldest value's, then the newest one's.
void exchange(const TurnKernel& turn, ReplicaBindings& bindings, std::uint64_t step) {
  const std::size_t row = turn.rowAt(bindings.operands(step));
  bindings.exchange(step, TurnKernel::kOldest, row);
  if (!turn.copiesNewest()) bindings.exchange(step, TurnKernel::kNewest, row);
}

}  // namespace

Walker::Walker(const Image& image, const std::atomic<bool>& cancelled, TripCounts& trip_counts)
    : image_(image), cancelled_(cancelled), trip_counts_(trip_counts) {
  std::optional<expr::WithoutChains> without_chains;
  if (!image.mechanisms.has(Mechanism::kChains)) without_chains.emplace();
  kernels_.reserve(image.steps.size());
  for (const auto& step : image.steps) {
    kernels_.push_back(KernelRegistry::instance().make(step));
    if (step.attributes.has(kFloatTraps))
      kernels_.back() = withFloatTraps(std::move(kernels_.back()), step, image.debug[step.debug]);
    turns_.push_back(dynamic_cast<const TurnKernel*>(kernels_.back().get()));
    counts_cycles_ |= roleOf(step) == KernelRole::kCycleStamp || step.attributes.has(kReadsCycles);
  }
  loops_.resize(image.nodes.size());
  // A loop that runs as one kernel has no steps whose cycles or results could be checked.
  if (!image.mechanisms.has(Mechanism::kLoops) || counts_cycles_ || hasFloatTraps(image)) return;
  makeLoops(0);
}

void Walker::makeLoops(std::uint32_t index) {
  const Node& node = image_.nodes[index];
  if (node.kind == NodeKind::kRepeat || node.kind == NodeKind::kRepeatWhile)
    loops_[index] = loop::makeLoop(image_, index, kernels_);
  if (loops_[index]) return;
  for (const auto child : node.children) makeLoops(child);
}

void Walker::checkCancelled() const {
  if (cancelled_.load(std::memory_order_relaxed))
    throw std::runtime_error("[Session] the program was cancelled");
}

std::uint32_t Walker::chosen(const Node& node, std::int64_t selector) {
  const auto found = std::ranges::find(node.selectors, selector);
  return node.children[static_cast<std::size_t>(found - node.selectors.begin())];
}

void Walker::walk(RunContext& context, ReplicaBindings& bindings, std::uint32_t index) const {
  const Node& node = image_.nodes[index];
  if (loops_[index]) {
    checkCancelled();
    LoopRun run{context, bindings, cancelled_, trip_counts_};
    loops_[index]->run(run);
    return checkCancelled();
  }
  switch (node.kind) {
    case NodeKind::kSequence:
      for (const auto child : node.children) {
        checkCancelled();
        walk(context, bindings, child);
      }
      return;
    case NodeKind::kStep:
      if (const TurnKernel* turn = turns_[node.value]) exchange(*turn, bindings, node.value);
      context.cycles = bindings.cycles;
      kernels_[node.value]->run(context, bindings.operands(node.value));
      countCycles(bindings, node.value);
      return;
    case NodeKind::kRepeat:
      for (std::uint64_t i = 0; i < node.value; ++i) {
        checkCancelled();
        walk(context, bindings, node.children[0]);
      }
      return;
    case NodeKind::kRepeatWhile:
      for (std::uint64_t iterations = 0;; ++iterations) {
        checkCancelled();
        walk(context, bindings, node.children[0]);
        if (bindings.predicate(index) != (node.value != 0))
          return trip_counts_.add(index, iterations);
        walk(context, bindings, node.children[1]);
      }
    case NodeKind::kIf:
      walk(context, bindings, node.children[bindings.predicate(index) ? 0 : 1]);
      return;
    case NodeKind::kSwitch:
      walk(context, bindings, chosen(node, bindings.selector(index)));
      return;
    case NodeKind::kError:
      throw std::runtime_error(image_.debug[node.value].name);
  }
}

}  // namespace ipujax::engine
