#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/collectives/CollectiveGroups.hpp"
#include "engine/kernels/collectives/PeerExchange.hpp"
#include "engine/kernels/move/Copy.hpp"

namespace ipujax::engine::collective {
namespace {

/// One array, or one slice of its first dimension, sent from replica to replica.
struct Transfer {
  unsigned from = 0;
  std::int64_t from_slice = 0;
  unsigned to = 0;
  std::int64_t to_slice = 0;
};

std::vector<std::int64_t> inner(const std::vector<std::int64_t>& dims) {
  return {dims.begin() + (dims.empty() ? 0 : 1), dims.end()};
}

std::vector<std::int64_t> rowMajor(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// What a step "gcl.move" copies; see MoveKernel.
class MoveStep {
 public:
  explicit MoveStep(const StepDesc& step)
      : in_(step.operands.at(0)),
        out_(step.operands.at(1)),
        pattern_(step.attributes.text("pattern")),
        slices_in_(pattern_ == "all_to_all"),
        slices_out_(pattern_ == "gather" || slices_in_) {
    for (const auto& group : groupsOf(step.attributes)) addTransfers(group);
  }

  const std::vector<Transfer>& transfers() const { return transfers_; }
  bool permutes() const { return pattern_ == "permute"; }
  bool receives(unsigned replica) const {
    return std::ranges::any_of(transfers_, [&](const Transfer& t) { return t.to == replica; });
  }

  std::vector<std::int64_t> shape() const { return slices_out_ ? inner(out_.shape) : out_.shape; }
  std::vector<std::int64_t> fromStrides() const {
    return slices_in_ ? inner(in_.strides) : in_.strides;
  }
  std::vector<std::int64_t> toStrides() const {
    return slices_out_ ? inner(out_.strides) : out_.strides;
  }
  /// The copy of one transfer between strides of these kinds.
  StridedCopy copy(const std::vector<std::int64_t>& from,
                   const std::vector<std::int64_t>& to) const {
    return {sizeOf(in_.type), shape(), from, to};
  }

  const std::byte* from(ReplicaPointers replicas, const Transfer& t) const {
    return replicas[t.from][0] + offset(in_, slices_in_, t.from_slice);
  }
  std::byte* to(ReplicaPointers replicas, const Transfer& t) const {
    return replicas[t.to][1] + offset(out_, slices_out_, t.to_slice);
  }
  void fillWithZeros(std::byte* output) const {
    static constexpr std::uint64_t kZero = 0;
    const std::vector<std::int64_t> still(out_.shape.size(), 0);
    copy(still, toStrides()).run(reinterpret_cast<const std::byte*>(&kZero), output);
  }

 private:
  void addTransfers(const std::vector<unsigned>& group) {
    if (permutes()) {
      transfers_.push_back({group.at(0), 0, group.at(1), 0});
      return;
    }
    for (std::size_t j = 0; j < group.size(); ++j) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        transfers_.push_back({group[i], slices_in_ ? static_cast<std::int64_t>(j) : 0, group[j],
                              static_cast<std::int64_t>(i)});
      }
    }
  }
  static std::int64_t offset(const OperandDesc& operand, bool slices, std::int64_t slice) {
    if (!slices) return 0;
    return slice * operand.strides[0] * static_cast<std::int64_t>(sizeOf(operand.type));
  }

  OperandDesc in_;
  OperandDesc out_;
  std::string pattern_;
  bool slices_in_;
  bool slices_out_;
  std::vector<Transfer> transfers_;
};

/// Sends each slice once to each process that needs it, and copies it there to all its replicas.
class MoveAmongProcesses final : public PeerStep {
 public:
  MoveAmongProcesses(const MoveStep& step, const runtime::Peers& peers)
      : step_(step),
        processes_(peers.processes()),
        self_(peers.self()),
        copy_(step.copy(step.fromStrides(), step.toStrides())),
        pack_(step.copy(step.fromStrides(), rowMajor(step.shape()))),
        unpack_(step.copy(rowMajor(step.shape()), step.toStrides())),
        is_packed_(isRowMajor(step.shape(), step.fromStrides())),
        bytes_(static_cast<std::size_t>(copy_.bytes())) {
    for (std::size_t t = 0; t < step_.transfers().size(); ++t) add(t);
  }

  void meet(RunContext& context, PeerExchange& peers, ReplicaPointers replicas) const override {
    const auto& transfers = step_.transfers();
    std::byte* const scratch = peers.scratch(slots_ * slotBytes());
    for (const Slice& slice : slices_) {
      const Transfer& t = transfers[slice.transfer];
      std::byte* const room = scratch + slice.slot * slotBytes();
      if (!slice.leaves) {
        peers.receive(slice.process, room, bytes_);
        continue;
      }
      const std::byte* const from = step_.from(replicas, t);
      if (!is_packed_) pack_.run(context.pool, from, room);
      peers.send(slice.process, is_packed_ ? from : room, bytes_);
    }
    for (const std::size_t t : local_)
      copy_.run(context.pool, step_.from(replicas, transfers[t]), step_.to(replicas, transfers[t]));
    peers.exchange();
    for (const Arrival& arrival : arrivals_)
      unpack_.run(context.pool, scratch + arrival.slot * slotBytes(),
                  step_.to(replicas, transfers[arrival.transfer]));
    if (!step_.permutes()) return;
    for (unsigned r = 0; r < replicas.size(); ++r)
      if (processes_[r] == self_ && !step_.receives(r)) step_.fillWithZeros(replicas[r][1]);
  }

 private:
  /// A slice that crosses from one process to another; a place in the scratch memory.
  struct Slice {
    std::size_t transfer;  ///< the first that needs it
    std::uint32_t process;
    bool leaves;
    std::size_t slot;
  };
  struct Arrival {
    std::size_t transfer;
    std::size_t slot;
  };

  std::size_t slotBytes() const { return (bytes_ + 63) / 64 * 64; }

  void add(std::size_t index) {
    const Transfer& t = step_.transfers()[index];
    const std::uint32_t from = processes_[t.from];
    const std::uint32_t to = processes_[t.to];
    if (from == self_ && to == self_) local_.push_back(index);
    if ((from == self_) == (to == self_)) return;
    const bool leaves = from == self_;
    const auto key = std::tuple(t.from, t.from_slice, to);
    const auto [found, is_new] = known_.try_emplace(key, slots_);
    if (is_new) slices_.push_back({index, leaves ? to : from, leaves, slots_++});
    if (!leaves) arrivals_.push_back({index, found->second});
  }

  const MoveStep& step_;
  const std::vector<std::uint32_t> processes_;
  const std::uint32_t self_;
  const StridedCopy copy_;
  const StridedCopy pack_;
  const StridedCopy unpack_;
  const bool is_packed_;
  const std::size_t bytes_;
  std::map<std::tuple<unsigned, std::int64_t, std::uint32_t>, std::size_t> known_;
  std::vector<Slice> slices_;
  std::vector<Arrival> arrivals_;
  std::vector<std::size_t> local_;
  std::size_t slots_ = 0;
};

/// Step "gcl.move": operands input and output, any views that do not overlap. Attributes: "groups"
/// and "sizes", and "pattern":
///   gather     output [member, ...] = the members' inputs
///   all_to_all output [i, ...] of member j = input [j, ...] of member i
///   permute    groups are pairs (from, to); replicas that receive nothing get zeros
class MoveKernel final : public CollectiveKernel {
 public:
  explicit MoveKernel(const StepDesc& step)
      : step_(step), copy_(step_.copy(step_.fromStrides(), step_.toStrides())) {
    const auto& transfers = step_.transfers();
    for (const Transfer& t : transfers) num_replicas_ = std::max({num_replicas_, t.from, t.to});
    num_replicas_ += transfers.empty() ? 0 : 1;
  }

  void meet(RunContext& context, ReplicaPointers replicas) const override {
    if (replicas.size() < num_replicas_) {
      throw runtime_error("[gcl.move] needs " + std::to_string(num_replicas_) +
                          " replicas; got a run with " + std::to_string(replicas.size()) +
                          ". Run the program on as many as it was compiled for.");
    }
    if (step_.permutes()) {
      for (unsigned r = 0; r < replicas.size(); ++r)
        if (!step_.receives(r)) step_.fillWithZeros(replicas[r][1]);
    }
    const auto& transfers = step_.transfers();
    const auto n = static_cast<std::int64_t>(transfers.size());
    if (n < 2 * context.pool.numThreads()) {
      for (const Transfer& t : transfers)
        copy_.run(context.pool, step_.from(replicas, t), step_.to(replicas, t));
      return;
    }
    const std::int64_t grain = 1 + kGrainBytes / std::max<std::int64_t>(copy_.bytes(), 1);
    context.pool.parallelFor(n, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Transfer& t = transfers[static_cast<std::size_t>(i)];
        copy_.run(step_.from(replicas, t), step_.to(replicas, t));
      }
    });
  }

  std::unique_ptr<PeerStep> amongProcesses(const runtime::Peers& peers) const override {
    return std::make_unique<MoveAmongProcesses>(step_, peers);
  }

 private:
  static constexpr std::int64_t kGrainBytes = 1 << 18;

  const MoveStep step_;
  const StridedCopy copy_;
  unsigned num_replicas_ = 0;
};

/// No replica receives from two pairs.
void checkPairs(const StepCheck& check, const Groups& groups) {
  std::set<unsigned> receivers;
  for (const auto& pair : groups)
    check.need(pair.size() == 2 && receivers.insert(pair[1]).second,
               "pairs with different receivers");
}

void checkMove(StepCheck& check) {
  check.operands(2);
  const std::string& pattern = check.text("pattern", {"gather", "all_to_all", "permute"});
  const auto in = check.read(0);
  const auto out = check.written(1).hasTypeOf(in);
  const Groups groups = checkedGroups(check, pattern != "permute");
  if (pattern == "permute") {
    out.hasShapeOf(in);
    return checkPairs(check, groups);
  }
  const bool slices_in = pattern == "all_to_all";
  for (const auto& group : groups) {
    const auto size = static_cast<std::int64_t>(group.size());
    check.need(out.dim(0) == size && (!slices_in || in.dim(0) == size), "a slice of each member");
  }
  check.need(out.rank() > 0 && inner(out->shape) == (slices_in ? inner(in->shape) : in->shape),
             "an output that fits its input");
  check.need(!slices_in || in.rank() > 0, "slices of its input");
}
const RegisterKernel kMove{"gcl.move", makeKernel<MoveKernel>, checkMove, KernelRole::kCollective};

}  // namespace
}  // namespace ipujax::engine::collective
