#include <algorithm>
#include <bit>
#include <map>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {
namespace {

/// Simulates the program in time: each IPU has a clock. A step of several IPUs begins when the last
/// of them is free, so a copy between IPUs synchronises two clocks. Reads from the host's memory
/// wait for the writes there. At both ends of a loop's iteration and of a branch, the IPUs that do
/// something in it or hold its predicate synchronise.
class Clocks {
 public:
  /// `with_host`: whether streams and callbacks take time.
  Clocks(const Draft& draft, bool with_host)
      : draft_(draft),
        with_host_(with_host),
        ipus_(draft.image.ipus),
        sets_(draft.image.nodes.size()) {
    findSet(0);
  }

  std::vector<IpuAccount> run() {
    walk(0);
    for (IpuAccount& ipu : ipus_) {
      const double awaited = std::max(0.0, ipu.hidden_io_cycles - ipu.cycles());
      ipu.io_cycles += awaited;
      ipu.hidden_io_cycles -= awaited;
    }
    meet(~std::uint64_t{0});
    return std::move(ipus_);
  }

  std::vector<Slice> takeSlices() { return std::move(slices_); }

 private:
  /// The IPUs that take part in a node; one bit for each, see takesPart.
  std::uint64_t findSet(std::uint32_t index) {
    const Node& node = draft_.image.nodes[index];
    std::uint64_t& set = sets_[index];
    if (set) return set;
    if (node.kind == NodeKind::kStep && !isFree(node.value)) set = draft_.step_ipus[node.value];
    if (hasPredicate(node.kind)) set = ipusOf(node.predicate);
    for (const auto child : node.children) set |= findSet(child);
    return set;
  }

  static bool hasPredicate(NodeKind kind) {
    return kind == NodeKind::kRepeatWhile || kind == NodeKind::kIf || kind == NodeKind::kSwitch;
  }

  std::uint64_t ipusOf(const OperandDesc& operand) const {
    const std::uint32_t variable = draft_.storages[draft_.find(operand.buffer)].variable;
    return engine::ipusOf(*draft_.graph->variables[variable].map,
                          draft_.graph->system.machine.tiles_per_ipu);
  }

  bool isFree(std::uint64_t step) const {
    return draft_.step_removed[step] || draft_.image.steps[step].cost.cycles() == 0;
  }

  void walk(std::uint32_t index) {
    const Node& node = draft_.image.nodes[index];
    const std::uint64_t set = sets_[index];
    switch (node.kind) {
      case NodeKind::kStep:
        return step(index);
      case NodeKind::kRepeat:
        return loop(index, set, [&] { repeat(node.children, node.value, set); });
      case NodeKind::kRepeatWhile:
        return loop(index, set, [&] { repeatWhile(node, set); });
      case NodeKind::kIf:
      case NodeKind::kSwitch:
        return longestOf(node, set);
      case NodeKind::kSequence:
      case NodeKind::kError:
        for (const auto child : node.children) walk(child);
    }
  }

  /// The condition is computed once more than the body.
  void repeatWhile(const Node& node, std::uint64_t set) {
    meet(set);
    walk(node.children[0]);
    repeat({node.children[1], node.children[0]}, draft_.image.assumed_trip_count, set);
  }

  void step(std::uint32_t node) {
    const std::uint64_t index = draft_.image.nodes[node].value;
    const StepDesc& step = draft_.image.steps[index];
    const Cost& cost = step.cost;
    if (isFree(index)) return;
    const std::uint64_t taking_part = draft_.step_ipus[index];
    meet(taking_part);
    const bool is_streaming = touchesStreamingMemory(step);
    awaitWrites(step, taking_part);
    const double begin = latestOf(taking_part);
    // A copy that needs no work on the host is an engine.account.
    const bool sends = !is_streaming && cost.link_bytes > 0 &&
                       (step.kernel == "engine.copy" || step.kernel == "engine.account");
    const bool joins =
        sends && sent_bytes_ > 0 &&
        sent_bytes_ + cost.link_bytes <= static_cast<double>(draft_.inter_ipu_copies_bytes);
    const bool hides = draft_.host.overlaps && step.kernel.starts_with("engine.");
    const double sync = joins ? 0 : cost.sync_cycles;
    sent_bytes_ = sends ? cost.link_bytes + (joins ? sent_bytes_ : 0) : 0;
    for (std::size_t i = 0; i < ipus_.size(); ++i) {
      if (!takesPart(taking_part, i)) continue;
      ipus_[i].compute_cycles += cost.compute_cycles;
      ipus_[i].exchange_cycles += cost.exchange_cycles + (sends ? 0 : sync);
      (is_streaming ? ipus_[i].host_cycles : ipus_[i].link_cycles) +=
          cost.link_cycles + (sends ? sync : 0);
      if (with_host_) (hides ? ipus_[i].hidden_io_cycles : ipus_[i].io_cycles) += cost.host_cycles;
    }
    noteWrites(step, taking_part);
    if (!profiled()) return;
    const double link = is_streaming ? 0 : cost.link_cycles;
    const double awaited = with_host_ && !hides ? cost.host_cycles : 0;
    const double host = (is_streaming ? cost.link_cycles : 0) + awaited;
    const double cycles = cost.compute_cycles + cost.exchange_cycles + sync + link + host;
    slices_.push_back({node, taking_part, times_, begin, cycles, cost.compute_cycles,
                       cost.exchange_cycles, sync, link, host});
  }

  bool profiled() const { return draft_.image.profile.has_value(); }

  /// Walks the loop below `node`, whose slice lasts until the whole loop is done.
  template <class Walk>
  void loop(std::uint32_t node, std::uint64_t set, const Walk& walk_loop) {
    const std::size_t slice = slices_.size();
    const double begin = latestOf(set);
    if (profiled()) slices_.push_back({node, set, times_, begin});
    walk_loop();
    if (profiled()) slices_[slice].cycles = latestOf(set) - begin;
  }

  bool isOnHost(std::uint32_t storage) const {
    return draft_.graph->variables[draft_.storages[storage].variable].is_remote;
  }

  /// Makes the IPUs that take part wait for the writes of the step's operands in the host's memory.
  void awaitWrites(const StepDesc& step, std::uint64_t taking_part) {
    double ready = 0;
    for (const OperandDesc& operand : step.operands) {
      const auto found = written_.find(draft_.find(operand.buffer));
      if (found != written_.end()) ready = std::max(ready, found->second);
    }
    for (std::size_t i = 0; i < ipus_.size(); ++i)
      if (takesPart(taking_part, i))
        ipus_[i].idle_cycles += std::max(0.0, ready - ipus_[i].cycles());
  }

  void noteWrites(const StepDesc& step, std::uint64_t taking_part) {
    for (const OperandDesc& operand : step.operands) {
      const std::uint32_t storage = draft_.find(operand.buffer);
      if (operand.access == Access::kRead || !isOnHost(storage)) continue;
      for (std::size_t i = 0; i < ipus_.size(); ++i)
        if (takesPart(taking_part, i))
          written_[storage] = std::max(written_[storage], ipus_[i].cycles());
    }
  }

  /// Whether some operand is in streaming memory.
  bool touchesStreamingMemory(const StepDesc& step) const {
    return std::ranges::any_of(step.operands, [&](const OperandDesc& operand) {
      return isOnHost(draft_.find(operand.buffer));
    });
  }

  /// Makes the IPUs of a set wait for the last of them.
  void meet(std::uint64_t set) {
    const double latest = latestOf(set);
    for (std::size_t i = 0; i < ipus_.size(); ++i)
      if (takesPart(set, i)) ipus_[i].idle_cycles += latest - ipus_[i].cycles();
  }

  void repeat(const std::vector<std::uint32_t>& nodes, std::uint64_t count, std::uint64_t set) {
    meet(set);
    if (count == 0) return;
    const std::vector<IpuAccount> before = ipus_;
    const std::map<std::uint32_t, double> known = written_;
    const double start = latestOf(set);
    times_ *= static_cast<double>(count);
    for (const auto node : nodes) walk(node);
    times_ /= static_cast<double>(count);
    meet(set);
    const auto again = static_cast<double>(count) - 1;
    for (std::size_t i = 0; i < ipus_.size(); ++i) {
      IpuAccount& now = ipus_[i];
      now.compute_cycles += again * (now.compute_cycles - before[i].compute_cycles);
      now.exchange_cycles += again * (now.exchange_cycles - before[i].exchange_cycles);
      now.link_cycles += again * (now.link_cycles - before[i].link_cycles);
      now.host_cycles += again * (now.host_cycles - before[i].host_cycles);
      now.io_cycles += again * (now.io_cycles - before[i].io_cycles);
      now.hidden_io_cycles += again * (now.hidden_io_cycles - before[i].hidden_io_cycles);
      now.idle_cycles += again * (now.idle_cycles - before[i].idle_cycles);
    }
    // Writes of an iteration get the time of the last iteration.
    for (auto& [storage, time] : written_)
      if (const auto old = known.find(storage); old == known.end() || old->second < time)
        time += again * (latestOf(set) - start) / (again + 1);
  }

  double latestOf(std::uint64_t set) const {
    double latest = 0;
    for (std::size_t i = 0; i < ipus_.size(); ++i)
      if (takesPart(set, i)) latest = std::max(latest, ipus_[i].cycles());
    return latest;
  }

  /// Only one branch runs; the account takes the longest.
  void longestOf(const Node& node, std::uint64_t set) {
    meet(set);
    const auto first = static_cast<std::size_t>(std::countr_zero(std::max<std::uint64_t>(set, 1)));
    const std::vector<IpuAccount> before = ipus_;
    const std::map<std::uint32_t, double> known = written_;
    std::vector<IpuAccount> longest = ipus_;
    std::map<std::uint32_t, double> written = written_;
    const std::size_t first_slice = slices_.size();
    std::vector<Slice> slices;
    for (const auto child : node.children) {
      ipus_ = before;
      written_ = known;
      slices_.resize(first_slice);
      walk(child);
      meet(set);
      if (ipus_[first].cycles() <= longest[first].cycles()) continue;
      longest = ipus_;
      written = written_;
      slices.assign(slices_.begin() + static_cast<std::ptrdiff_t>(first_slice), slices_.end());
    }
    slices_.resize(first_slice);
    slices_.insert(slices_.end(), slices.begin(), slices.end());
    ipus_ = std::move(longest);
    written_ = std::move(written);
  }

  const Draft& draft_;
  bool with_host_;
  std::vector<IpuAccount> ipus_;
  std::vector<std::uint64_t> sets_;          ///< by node
  std::map<std::uint32_t, double> written_;  ///< when, by storage in the host's memory
  std::vector<Slice> slices_;                ///< if a profile is requested
  double times_ = 1;                         ///< that a run executes the current node
  double sent_bytes_ = 0;  ///< by the preceding copies between IPUs, in one exchange
};

}  // namespace

void accountTime(Draft& draft) {
  const std::vector<IpuAccount> blank = draft.image.ipus;
  Image& image = draft.image;
  const auto account = [&](bool with_host) {
    image.ipus = blank;
    Clocks clocks(draft, with_host);
    image.ipus = clocks.run();
    if (image.profile) image.profile->slices = clocks.takeSlices();
  };
  account(false);
  image.cycles_without_host = image.elapsedCycles();
  const auto& steps = image.steps;
  if (std::ranges::any_of(steps, [](const StepDesc& s) { return s.cost.host_cycles > 0; }))
    account(true);
}

}  // namespace ipujax::engine::build
