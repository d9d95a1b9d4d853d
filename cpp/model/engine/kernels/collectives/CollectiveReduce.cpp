#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/collectives/ReduceStep.hpp"

namespace ipujax::engine::collective {

reduction::Reducer reducerOf(CollectiveOperator op) {
  using reduction::Reducer;
  // MEAN divides the sum; LOCAL combines nothing.
  constexpr Reducer kReducers[] = {Reducer::kAdd,     Reducer::kAdd,       Reducer::kMultiply,
                                   Reducer::kMinimum, Reducer::kMaximum,   Reducer::kAnd,
                                   Reducer::kOr,      Reducer::kSquareAdd, Reducer::kAdd};
  return kReducers[static_cast<int>(op)];
}

std::int64_t shareOf(std::int64_t n, std::size_t members, bool scatters) {
  const auto p = static_cast<std::int64_t>(members);
  return scatters ? (n + p - 1) / p : n;
}

ReduceStep::ReduceStep(const StepDesc& step)
    : groups(groupsOf(step.attributes)), scatters(step.attributes.integer("scatter") != 0) {
  const auto op = static_cast<CollectiveOperator>(step.attributes.integer("op"));
  is_mean = op == CollectiveOperator::MEAN;
  is_local = op == CollectiveOperator::LOCAL;
  squares = op == CollectiveOperator::SQUARE_ADD;
  const std::size_t k = step.operands.size() / 2;
  for (std::size_t i = 0; i < k; ++i) {
    const auto& in = step.operands[i];
    parts.push_back({i, k + i, in.type, combineLoopsFor(reducerOf(op), in.type), in.numElements()});
  }
}

std::int64_t ReduceStep::share(const ReducePart& part, std::size_t members) const {
  return shareOf(part.n, members, scatters);
}

namespace {

std::int64_t blocksOf(std::int64_t n) { return (n + kCombineBlock - 1) / kCombineBlock; }

/// Step "gcl.reduce": operands are k inputs, then k outputs, all contiguous. Attributes: "op",
/// "groups" and "sizes", "scatter": 0 where all members get the whole result, 1 where member j of a
/// group gets part j of ceil(n / members) elements, the last parts filled up with zeros.
/// Combines as a balanced tree over the group's members, however many threads and processes there
/// are. An output may be its input's memory: a block is read from all replicas before any is
/// written.
class ReduceKernel final : public CollectiveKernel {
 public:
  explicit ReduceKernel(const StepDesc& step) : step_(step) { locateBlocks(); }

  void meet(RunContext& context, ReplicaPointers replicas) const override {
    const auto& groups = step_.groups;
    for (const auto& group : groups) {
      for (const unsigned r : group) {
        if (r >= replicas.size()) needsReplicas(r + 1, replicas.size());
      }
    }
    if (blocks_.back() == 0) return;
    context.pool.parallelFor(blocks_.back(), grain_, [&](std::int64_t begin, std::int64_t end) {
      std::size_t i = 0;
      for (std::int64_t b = begin; b < end; ++b) {
        while (b >= blocks_[i]) ++i;
        const std::int64_t first = i == 0 ? 0 : blocks_[i - 1];
        runBlock(replicas, i / groups.size(), groups[i % groups.size()], b - first);
      }
    });
  }

  std::unique_ptr<PeerStep> amongProcesses(const runtime::Peers& peers) const override {
    return reduceAmongProcesses(step_, peers);
  }

 private:
  [[noreturn]] static void needsReplicas(std::size_t needs, std::size_t got) {
    throw runtime_error("[gcl.reduce] needs " + std::to_string(needs) +
                        " replicas; got a run with " + std::to_string(got) +
                        ". Run the program on as many as it was compiled for.");
  }

  /// blocks_[part * groups + group]: number of blocks up to and including that one.
  void locateBlocks() {
    std::int64_t total = 0;
    std::size_t streams = 1;
    for (const ReducePart& part : step_.parts) {
      for (const auto& group : step_.groups) {
        const auto slots = static_cast<std::int64_t>(step_.scatters ? group.size() : 1);
        total += slots * blocksOf(step_.share(part, group.size()));
        blocks_.push_back(total);
        streams = std::max(streams, group.size());
      }
    }
    // A thread reads at least about 256 KiB: less is not worth waking one.
    grain_ = std::max<std::int64_t>(1, 16 / static_cast<std::int64_t>(streams));
  }

  void runBlock(ReplicaPointers replicas, std::size_t index, const std::vector<unsigned>& group,
                std::int64_t block) const {
    const ReducePart& part = step_.parts[index];
    const std::int64_t per_member = step_.share(part, group.size());
    const std::int64_t num_blocks = blocksOf(per_member);
    const auto member = static_cast<std::size_t>(block / num_blocks);
    const std::int64_t to = block % num_blocks * kCombineBlock;
    const std::int64_t length = std::min(kCombineBlock, per_member - to);
    const std::int64_t from = static_cast<std::int64_t>(member) * per_member + to;
    const std::int64_t n = std::clamp<std::int64_t>(part.n - from, 0, length);
    alignas(64) std::array<std::byte, kCombineBlock * kMostBytes> result;
    combine(replicas, part, group, member, from, n, result.data());
    const std::size_t size = sizeOf(part.type);
    if (n < length) std::memset(result.data() + n * size, 0, (length - n) * size);
    if (step_.scatters) {
      store(replicas[group[member]][part.output], to, length, size, result.data());
    } else {
      for (const unsigned r : group) {
        store(replicas[r][part.output], to, length, size, result.data());
      }
    }
  }

  static void store(std::byte* out, std::int64_t at, std::int64_t n, std::size_t size,
                    const std::byte* result) {
    std::memcpy(out + at * size, result, static_cast<std::size_t>(n) * size);
  }

  void combine(ReplicaPointers replicas, const ReducePart& part, const std::vector<unsigned>& group,
               std::size_t member, std::int64_t from, std::int64_t n, std::byte* result) const {
    if (n == 0) return;
    const std::size_t size = sizeOf(part.type);
    const auto at = [&](unsigned r) { return replicas[r][part.input] + from * size; };
    if (step_.is_local) {
      std::memcpy(result, at(group[member]), static_cast<std::size_t>(n) * size);
      return;
    }
    constexpr std::size_t kFew = 64;
    std::array<CombineSource, kFew> few;
    std::vector<CombineSource> many(group.size() > kFew ? group.size() : 0);
    const std::span<CombineSource> sources(many.empty() ? few.data() : many.data(), group.size());
    for (std::size_t i = 0; i < group.size(); ++i) sources[i] = {at(group[i])};
    alignas(64) std::array<float, kCombineBlock> floats;
    void* acc = part.type == ElementType::kHalf ? static_cast<void*>(floats.data()) : result;
    const void* combined = combineTree(*part.loops, sources, n, acc);
    finishBlock(*part.loops, part.type, step_.meanOf(group), combined, n, result);
  }

  const ReduceStep step_;
  std::vector<std::int64_t> blocks_{};
  std::int64_t grain_ = 1;
};

void checkReduce(StepCheck& check) {
  const auto op = static_cast<CollectiveOperator>(
      check.integer("op", 0, static_cast<int>(CollectiveOperator::LOCAL)));
  const bool scatters = check.flag("scatter");
  const Groups groups = checkedGroups(check, true);
  const std::size_t k = check.numOperands() / 2;
  check.need(k > 0 && !groups.empty(), "operands and groups");
  check.operands(2 * k);
  for (std::size_t i = 0; i < k; ++i) {
    const auto in = check.read(i).isContiguous();
    const auto out = check.written(k + i).isContiguous().hasTypeOf(in);
    const CombineLoops* loops = combineLoopsFor(reducerOf(op), in->type);
    check.need(loops && (op != CollectiveOperator::MEAN || loops->divide),
               "an operator that has a meaning for its type");
    for (const auto& group : groups)
      out.hasElements(shareOf(in->numElements(), group.size(), scatters));
    check.mayReplace(i, k + i);
  }
}
const RegisterKernel kReduce{"gcl.reduce", makeKernel<ReduceKernel>, checkReduce,
                             KernelRole::kCollective};

}  // namespace
}  // namespace ipujax::engine::collective
