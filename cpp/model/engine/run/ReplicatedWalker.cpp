#include "engine/run/ReplicatedWalker.hpp"

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>

#include "engine/HostCallbacks.hpp"
#include "engine/SourceText.hpp"
#include "engine/run/ReplicaThreads.hpp"

namespace ipujax::engine {
namespace {

/// Assumed iterations of an open loop, only for the choice below.
constexpr double kGuessedIterations = 64;

/// With fewer bytes over all replicas, passing work to other threads takes longer than doing it.
constexpr double kWorthThreads = 32 * 1024;

double bytesOf(const StepDesc& step) {
  double bytes = 0;
  for (const auto& operand : step.operands)
    bytes += static_cast<double>(operand.numElements()) * static_cast<double>(sizeOf(operand.type));
  return bytes;
}

/// The host for replicas that run at the same time, until one of them fails.
class UntilFailure final : public HostCallbacks, public HostStreams {
 public:
  explicit UntilFailure(const RunContext& context) : context_(context) {}
  RunContext guarded() {
    RunContext guarded = context_;
    if (guarded.callbacks) guarded.callbacks = this;
    if (guarded.streams) guarded.streams = this;
    return guarded;
  }
  bool fail() { return !failed_.exchange(true); }  ///< whether it is the first failure

  void call(const std::string& id, std::span<const HostArray> arguments,
            std::span<const HostArray> results) override {
    check();
    context_.callbacks->call(id, arguments, results);
  }
  void read(std::uint32_t stream, std::uint32_t replica, void* device,
            std::uint64_t bytes) override {
    check();
    context_.streams->read(stream, replica, device, bytes);
  }
  void write(std::uint32_t stream, std::uint32_t replica, const void* device,
             std::uint64_t bytes) override {
    check();
    context_.streams->write(stream, replica, device, bytes);
  }
  void print(const std::string& line) override { context_.streams->print(line); }

 private:
  void check() const {
    if (failed_.load()) throw std::runtime_error("[replicas] another replica failed");
  }

  const RunContext& context_;
  std::atomic<bool> failed_{false};
};

}  // namespace

ReplicatedWalker::ReplicatedWalker(const Walker& walker, std::shared_ptr<runtime::Peers> peers)
    : walker_(walker),
      image_(walker.image()),
      collectives_(image_.steps.size()),
      facts_(image_.nodes.size()) {
  for (std::size_t s = 0; s < image_.steps.size(); ++s)
    collectives_[s] = dynamic_cast<const CollectiveKernel*>(&walker.kernel(s));
  for (std::size_t n = image_.nodes.size(); n-- > 0;) find(static_cast<std::uint32_t>(n));
  const auto here = [&](std::uint32_t r) {
    return !peers || peers->processes()[r] == peers->self();
  };
  for (std::uint32_t r = 0; r < image_.signature.num_replicas; ++r)
    if (here(r)) numbers_.push_back(r);
  if (!peers) return;
  peers_ = std::make_unique<PeerExchange>(std::move(peers));
  for (const CollectiveKernel* kernel : collectives_)
    peer_steps_.push_back(kernel ? kernel->amongProcesses(peers_->peers()) : nullptr);
}

/// Children come after their parents, so their facts are known.
void ReplicatedWalker::find(std::uint32_t index) {
  const Node& node = image_.nodes[index];
  Facts& facts = facts_[index];
  if (node.kind == NodeKind::kStep) {
    facts.meets = collectives_[node.value] != nullptr;
    facts.calls_host = walker_.kernel(node.value).callsHost();
    facts.streams = walker_.kernel(node.value).usesStreams();
    facts.bytes = bytesOf(image_.steps[node.value]);
    return;
  }
  for (const auto child : node.children) {
    facts.meets |= facts_[child].meets;
    facts.calls_host |= facts_[child].calls_host;
    facts.streams |= facts_[child].streams;
    facts.bytes += facts_[child].bytes;
  }
  if (node.kind == NodeKind::kRepeat) facts.bytes *= static_cast<double>(node.value);
  if (node.kind == NodeKind::kRepeatWhile) facts.bytes *= kGuessedIterations;
}

void ReplicatedWalker::run(const RunContext& context, std::span<ReplicaBindings> replicas) {
  if (peers_) peers_->peers().begin();
  try {
    walk({context, replicas}, 0);
  } catch (const std::exception& error) {
    if (peers_) peers_->peers().fail(error.what());
    throw;
  }
}

void ReplicatedWalker::walk(const Run& run, std::uint32_t index) {
  if (!facts_[index].meets) return walkApart(run, {&index, 1});
  const Node& node = image_.nodes[index];
  switch (node.kind) {
    case NodeKind::kSequence:
      return walkSequence(run, node);
    case NodeKind::kStep:
      return meet(run, node.value);
    case NodeKind::kRepeat:
      for (std::uint64_t i = 0; i < node.value; ++i) {
        walker_.checkCancelled();
        walk(run, node.children[0]);
      }
      return;
    case NodeKind::kRepeatWhile:
      for (std::uint64_t iterations = 0;; ++iterations) {
        walker_.checkCancelled();
        walk(run, node.children[0]);
        if ((agreed(run, index) != 0) != (node.value != 0))
          return walker_.tripCounts().add(index, iterations);
        walk(run, node.children[1]);
      }
    case NodeKind::kIf:
      return walk(run, node.children[agreed(run, index) ? 0 : 1]);
    case NodeKind::kSwitch:
      return walk(run, Walker::chosen(node, agreed(run, index)));
    case NodeKind::kError:
      return;  // holds no step
  }
}

void ReplicatedWalker::walkSequence(const Run& run, const Node& node) {
  const auto& children = node.children;
  for (std::size_t i = 0; i < children.size();) {
    std::size_t end = i;
    while (end < children.size() && !facts_[children[end]].meets) ++end;
    if (end > i) {
      walkApart(run, {children.data() + i, end - i});
    } else {
      walk(run, children[end++]);
    }
    i = end;
  }
}

void ReplicatedWalker::meet(const Run& run, std::uint64_t step) {
  RunContext context = run.context;
  std::vector<std::span<std::byte* const>> operands(image_.signature.num_replicas);
  for (std::size_t r = 0; r < run.replicas.size(); ++r)
    operands[numbers_[r]] = run.replicas[r].operands(step);
  if (peers_) {
    const DebugEntry& entry = image_.debug[image_.steps[step].debug];
    peers_->setPlace(step, placeOf(entry.name, entry.source));
    peer_steps_[step]->meet(context, *peers_, operands);
  } else {
    collectives_[step]->meet(context, operands);
  }
  for (ReplicaBindings& bindings : run.replicas) walker_.countCycles(bindings, step);
}

void ReplicatedWalker::walkApart(const Run& run, std::span<const std::uint32_t> nodes) const {
  const auto one = [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r) walkOne(run, nodes, static_cast<std::uint32_t>(r));
  };
  const auto count = static_cast<std::int64_t>(run.replicas.size());
  bool calls_host = false;
  bool copies_streams = false;
  double bytes = 0;
  for (const auto node : nodes) {
    calls_host |= facts_[node].calls_host;
    copies_streams |= facts_[node].streams;
    bytes += facts_[node].bytes;
  }
  const StreamThreads streams =
      copies_streams && run.context.streams ? run.context.streams->threads() : StreamThreads::kPool;
  const HostCallbacks* const callbacks = run.context.callbacks;
  if (streams == StreamThreads::kEachReplica ||
      (calls_host && callbacks && callbacks->takesManyThreads()))
    return callTogether(run, nodes);
  // With fewer replicas than threads, each one's steps share the threads instead.
  ThreadPool& pool = run.context.pool;
  const bool in_turn = calls_host || streams == StreamThreads::kOne;
  const bool together =
      !in_turn && count >= pool.numThreads() && bytes * static_cast<double>(count) >= kWorthThreads;
  together ? pool.parallelFor(count, 1, one) : one(0, count);
}

void ReplicatedWalker::walkOne(const Run& run, std::span<const std::uint32_t> nodes,
                               std::uint32_t replica) const {
  RunContext context = run.context;
  context.replica = numbers_[replica];
  for (const auto node : nodes) walker_.walk(context, run.replicas[replica], node);
}

/// Once one replica fails, no other calls the host: it might wait there for the failed one.
void ReplicatedWalker::callTogether(const Run& run, std::span<const std::uint32_t> nodes) const {
  UntilFailure host(run.context);
  const RunContext context = host.guarded();
  const Run guarded{context, run.replicas};
  const auto count = static_cast<std::uint32_t>(run.replicas.size());
  ReplicaThreads::shared().runTogether(count, [&](std::uint32_t replica) {
    try {
      walkOne(guarded, nodes, replica);
    } catch (...) {
      if (!host.fail()) return;  // it may follow from the first failure
      if (run.context.callbacks) run.context.callbacks->failed(std::current_exception());
      throw;
    }
  });
}

/// The condition of a node in which the replicas meet.
std::int64_t ReplicatedWalker::agreed(const Run& run, std::uint32_t index) {
  const bool is_switch = image_.nodes[index].kind == NodeKind::kSwitch;
  const auto value = [&](const ReplicaBindings& bindings) {
    return is_switch ? bindings.selector(index)
                     : static_cast<std::int64_t>(bindings.predicate(index));
  };
  const std::int64_t first = value(run.replicas[0]);
  for (std::size_t r = 1; r < run.replicas.size(); ++r) {
    const std::int64_t other = value(run.replicas[r]);
    if (other == first) continue;
    throw std::invalid_argument(
        "[replicas] needs all to take the same way around a collective; got a condition that is " +
        std::to_string(first) + " on replica " + std::to_string(numbers_[0]) + " and " +
        std::to_string(other) + " on replica " + std::to_string(numbers_[r]) + ", around " +
        meetingPlace(index) +
        ". Make the condition equal on all replicas, by a collective or by "
        "ipu.assume_equal_across_replicas.");
  }
  if (peers_) {
    const std::string place = meetingPlace(index);
    peers_->setPlace(image_.steps.size() + index, "a condition around " + place);
    peers_->requireSame(first, place);
  }
  return first;
}

/// Name and source line of the first step under a node at which the replicas meet.
std::string ReplicatedWalker::meetingPlace(std::uint32_t index) const {
  const Node& node = image_.nodes[index];
  if (node.kind == NodeKind::kStep) {
    const DebugEntry& entry = image_.debug[image_.steps[node.value].debug];
    return placeOf(entry.name, entry.source);
  }
  for (const auto child : node.children)
    if (facts_[child].meets) return meetingPlace(child);
  return "no step";
}

}  // namespace ipujax::engine
