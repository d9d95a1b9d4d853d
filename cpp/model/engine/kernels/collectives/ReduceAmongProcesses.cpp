#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "engine/kernels/collectives/PeerExchange.hpp"
#include "engine/kernels/collectives/ReduceStep.hpp"

namespace ipujax::engine::collective {
namespace {

/// Processes send all their parts to all if they have at most this many bytes: one exchange then
/// takes the place of two.
constexpr std::int64_t kSmallBytes = 16 * 1024;
/// Parts of an array begin at multiples of this many elements.
constexpr std::int64_t kAlignment = 64;

/// The members of a group that one process combines: a subtree as large as it can be.
struct Subtree {
  std::size_t first;  ///< member of the group
  std::size_t count;
  std::uint32_t process;
};

/// Elements that one process, or each of several, finishes for a group.
struct Task {
  std::size_t part;
  const std::vector<unsigned>* group;
  std::vector<Subtree> subtrees;
  std::vector<std::uint32_t> owners;     ///< who finish it
  std::vector<std::uint32_t> receivers;  ///< who get the result from the only owner
  std::vector<unsigned> replicas;        ///< of this process, that keep the result
  std::int64_t from = 0;                 ///< element of the inputs
  std::int64_t n = 0;
  std::int64_t to = 0;      ///< element of the outputs
  std::int64_t length = 0;  ///< n, and zeros after them
};

/// What an owner needs from another process: what a subtree was combined to.
struct Partial {
  std::size_t task;
  std::size_t subtree;
  std::uint32_t owner;
  std::size_t scratch;  ///< where it lies
};

/// Elements of a task that one thread works on, at a time.
struct Block {
  std::size_t index;  ///< of a partial or a task
  std::int64_t begin;
  std::int64_t n;
};

bool contains(const std::vector<std::uint32_t>& processes, std::uint32_t process) {
  return std::ranges::find(processes, process) != processes.end();
}

std::size_t offset(std::int64_t elements, std::size_t bytes) {
  return static_cast<std::size_t>(elements) * bytes;
}

void addBlocks(std::vector<Block>& blocks, std::size_t index, std::int64_t n) {
  for (std::int64_t begin = 0; begin < n; begin += kCombineBlock)
    blocks.push_back({index, begin, std::min(kCombineBlock, n - begin)});
}

/// Each process combines the largest subtrees whose members it runs, and sends the results to the
/// process that finishes the tree: for a whole result, each finishes a part of the elements and
/// gives it to the others; for a scattered one, it finishes those of its own members. So the order
/// of combination is that of one process.
class ReduceAmongProcesses final : public PeerStep {
 public:
  ReduceAmongProcesses(const ReduceStep& step, const runtime::Peers& peers)
      : step_(step), processes_(peers.processes()), self_(peers.self()) {
    for (std::size_t part = 0; part < step_.parts.size(); ++part)
      for (const auto& group : step_.groups) addTasks(part, group);
    for (std::size_t t = 0; t < tasks_.size(); ++t) addPartials(t);
  }

  void meet(RunContext& context, PeerExchange& peers, ReplicaPointers replicas) const override {
    std::byte* const scratch = peers.scratch(scratch_bytes_);
    context.pool.parallelFor(size(packed_), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) pack(replicas, at(packed_, b), scratch);
    });
    for (const Partial& partial : partials_) {
      const Task& task = tasks_[partial.task];
      const std::size_t bytes = offset(task.n, accumulatorBytes(typeOf(task)));
      const std::uint32_t from = task.subtrees[partial.subtree].process;
      if (from == self_) {
        peers.send(partial.owner, partialAt(replicas, partial, scratch), bytes);
      } else {
        peers.receive(from, scratch + partial.scratch, bytes);
      }
    }
    peers.exchange();
    context.pool.parallelFor(size(finished_), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) finish(replicas, at(finished_, b), scratch);
    });
    share(peers, replicas);
  }

 private:
  static std::int64_t size(const std::vector<Block>& blocks) {
    return static_cast<std::int64_t>(blocks.size());
  }
  static const Block& at(const std::vector<Block>& blocks, std::int64_t b) {
    return blocks[static_cast<std::size_t>(b)];
  }
  const ReducePart& partOf(const Task& task) const { return step_.parts[task.part]; }
  ElementType typeOf(const Task& task) const { return partOf(task).type; }

  void addTasks(std::size_t part, const std::vector<unsigned>& group) {
    std::set<std::uint32_t> meeting;
    for (const unsigned r : group) meeting.insert(processes_[r]);
    if (!meeting.contains(self_)) return;
    const std::vector<std::uint32_t> all(meeting.begin(), meeting.end());
    step_.scatters ? addScattered(part, group) : addShared(part, group, all);
  }

  void addScattered(std::size_t part, const std::vector<unsigned>& group) {
    const std::int64_t n = step_.parts[part].n;
    const std::int64_t share = step_.share(step_.parts[part], group.size());
    for (std::size_t m = 0; m < group.size(); ++m) {
      Task task{part, &group, subtreesOf(group, m), {processes_[group[m]]}, {}, {}};
      if (processes_[group[m]] == self_) task.replicas = {group[m]};
      task.from = std::min(static_cast<std::int64_t>(m) * share, n);
      task.n = std::min(share, n - task.from);
      task.length = share;
      tasks_.push_back(std::move(task));
    }
  }

  void addShared(std::size_t part, const std::vector<unsigned>& group,
                 const std::vector<std::uint32_t>& all) {
    const std::int64_t n = step_.parts[part].n;
    std::vector<unsigned> own;
    for (const unsigned r : group)
      if (processes_[r] == self_) own.push_back(r);
    Task task{part, &group, subtreesOf(group, 0), all, {}, own};
    const std::size_t bytes = offset(n, accumulatorBytes(typeOf(task)));
    if (all.size() == 1 || bytes <= kSmallBytes) {
      task.n = task.length = n;
      tasks_.push_back(std::move(task));
      return;
    }
    const auto count = static_cast<std::int64_t>(all.size());
    const std::int64_t piece =
        (n / count + kAlignment) / kAlignment * kAlignment;  // at least n / count
    for (std::int64_t p = 0; p < count; ++p) {
      task.owners = {all[static_cast<std::size_t>(p)]};
      task.receivers = all;
      std::erase(task.receivers, task.owners.front());
      task.from = task.to = std::min(p * piece, n);
      task.n = task.length = std::min(piece, n - task.from);
      tasks_.push_back(task);
    }
  }

  std::vector<Subtree> subtreesOf(const std::vector<unsigned>& group, std::size_t member) const {
    std::vector<Subtree> found;
    if (step_.is_local) {
      found.push_back({member, 1, processes_[group[member]]});
    } else {
      addSubtrees(group, 0, group.size(), found);
    }
    return found;
  }

  void addSubtrees(const std::vector<unsigned>& group, std::size_t first, std::size_t count,
                   std::vector<Subtree>& found) const {
    const std::uint32_t process = processes_[group[first]];
    const auto members = std::span(group).subspan(first, count);
    if (std::ranges::all_of(members, [&](unsigned r) { return processes_[r] == process; })) {
      found.push_back({first, count, process});
      return;
    }
    const std::size_t left = leftOf(count);
    addSubtrees(group, first, left, found);
    addSubtrees(group, first + left, count - left, found);
  }

  void addPartials(std::size_t index) {
    const Task& task = tasks_[index];
    received_.emplace_back(task.subtrees.size());
    for (const std::uint32_t owner : task.owners) {
      for (std::size_t s = 0; s < task.subtrees.size(); ++s) {
        const Subtree& subtree = task.subtrees[s];
        const bool sends = subtree.process == self_ && owner != self_;
        const bool receives = subtree.process != self_ && owner == self_;
        if (!sends && !receives) continue;
        if (receives) received_[index][s] = scratch_bytes_;
        partials_.push_back({index, s, owner, scratch_bytes_});
        if (sends && isInput(task, subtree)) continue;
        if (sends) addBlocks(packed_, partials_.size() - 1, task.n);
        scratch_bytes_ += offset(task.n + kAlignment, accumulatorBytes(typeOf(task)));
      }
    }
    if (contains(task.owners, self_)) addBlocks(finished_, index, task.length);
  }

  /// Whether a partial result is the member's own array.
  bool isInput(const Task& task, const Subtree& subtree) const {
    return subtree.count == 1 && !step_.squares && typeOf(task) != ElementType::kHalf;
  }

  const std::byte* inputAt(ReplicaPointers replicas, const Task& task, std::size_t member,
                           std::int64_t begin) const {
    const ReducePart& part = partOf(task);
    return replicas[(*task.group)[member]][part.input] +
           offset(task.from + begin, sizeOf(part.type));
  }

  const std::byte* partialAt(ReplicaPointers replicas, const Partial& partial,
                             const std::byte* scratch) const {
    const Task& task = tasks_[partial.task];
    const Subtree& subtree = task.subtrees[partial.subtree];
    return isInput(task, subtree) ? inputAt(replicas, task, subtree.first, 0)
                                  : scratch + partial.scratch;
  }

  void addLeaves(ReplicaPointers replicas, const Task& task, const Subtree& subtree,
                 std::int64_t begin, std::vector<CombineSource>& sources) const {
    for (std::size_t m = subtree.first; m < subtree.first + subtree.count; ++m)
      sources.push_back({inputAt(replicas, task, m, begin)});
  }

  void pack(ReplicaPointers replicas, const Block& block, std::byte* scratch) const {
    const Partial& partial = partials_[block.index];
    const Task& task = tasks_[partial.task];
    std::vector<CombineSource> sources;
    addLeaves(replicas, task, task.subtrees[partial.subtree], block.begin, sources);
    std::byte* const to =
        scratch + partial.scratch + offset(block.begin, accumulatorBytes(typeOf(task)));
    combineTree(*partOf(task).loops, sources, block.n, to);
  }

  void finish(ReplicaPointers replicas, const Block& block, const std::byte* scratch) const {
    const Task& task = tasks_[block.index];
    const ReducePart& part = partOf(task);
    const std::size_t size = sizeOf(part.type);
    const std::int64_t n = std::clamp<std::int64_t>(task.n - block.begin, 0, block.n);
    alignas(64) std::array<std::byte, kCombineBlock * kMostBytes> acc;
    alignas(64) std::array<std::byte, kCombineBlock * kMostBytes> result;
    if (n > 0) {
      std::vector<CombineSource> sources;
      for (std::size_t s = 0; s < task.subtrees.size(); ++s) {
        const Subtree& subtree = task.subtrees[s];
        if (subtree.process == self_) {
          addLeaves(replicas, task, subtree, block.begin, sources);
        } else {
          sources.push_back({scratch + received_[block.index][s] +
                                 offset(block.begin, accumulatorBytes(part.type)),
                             subtree.count});
        }
      }
      const void* combined = combineTree(*part.loops, sources, n, acc.data());
      finishBlock(*part.loops, part.type, step_.meanOf(*task.group), combined, n, result.data());
    }
    std::memset(result.data() + offset(n, size), 0, offset(block.n - n, size));
    for (const unsigned r : task.replicas)
      std::memcpy(outputAt(replicas, task, r, block.begin), result.data(), offset(block.n, size));
  }

  std::byte* outputAt(ReplicaPointers replicas, const Task& task, unsigned replica,
                      std::int64_t begin) const {
    const ReducePart& part = partOf(task);
    return replicas[replica][part.output] + offset(task.to + begin, sizeOf(part.type));
  }

  /// Gives finished parts to the processes that have not got them.
  void share(PeerExchange& peers, ReplicaPointers replicas) const {
    for (const Task& task : tasks_) {
      const std::size_t bytes = offset(task.length, sizeOf(typeOf(task)));
      if (contains(task.receivers, self_)) {
        peers.receive(task.owners.front(), outputAt(replicas, task, task.replicas.front(), 0),
                      bytes);
        continue;
      }
      for (const std::uint32_t receiver : task.receivers)
        peers.send(receiver, outputAt(replicas, task, task.replicas.front(), 0), bytes);
    }
    peers.exchange();
    for (const Task& task : tasks_) {
      if (!contains(task.receivers, self_)) continue;
      const std::byte* const first = outputAt(replicas, task, task.replicas.front(), 0);
      for (const unsigned r : std::span(task.replicas).subspan(1))
        std::memcpy(outputAt(replicas, task, r, 0), first,
                    offset(task.length, sizeOf(typeOf(task))));
    }
  }

  const ReduceStep& step_;
  const std::vector<std::uint32_t> processes_;
  const std::uint32_t self_;
  std::vector<Task> tasks_;
  std::vector<std::vector<std::size_t>> received_;  // [task][subtree]: place in the scratch memory
  std::vector<Partial> partials_;
  std::vector<Block> packed_;    // of partials
  std::vector<Block> finished_;  // of tasks
  std::size_t scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<PeerStep> reduceAmongProcesses(const ReduceStep& step,
                                               const runtime::Peers& peers) {
  return std::make_unique<ReduceAmongProcesses>(step, peers);
}

}  // namespace ipujax::engine::collective
