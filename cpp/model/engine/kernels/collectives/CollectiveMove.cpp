#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/collectives/CollectiveGroups.hpp"
#include "engine/kernels/move/Copy.hpp"

namespace ipujax::engine::collective {
namespace {

using Pointers = std::span<std::byte* const>;

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

/// Step "gcl.move": operands input and output, any views that do not overlap. Attributes: "groups"
/// and "sizes", and "pattern":
///   gather     output [member, ...] = the members' inputs
///   all_to_all output [i, ...] of member j = input [j, ...] of member i
///   permute    groups are pairs (from, to); replicas that receive nothing get zeros
class MoveKernel final : public CollectiveKernel {
 public:
  explicit MoveKernel(const StepDesc& step)
      : in_(step.operands.at(0)),
        out_(step.operands.at(1)),
        groups_(groupsOf(step.attributes)),
        pattern_(step.attributes.text("pattern")),
        slices_in_(pattern_ == "all_to_all"),
        slices_out_(pattern_ == "gather" || slices_in_),
        copy_(copyOf(true)),
        zeros_(copyOf(false)) {
    for (const auto& group : groups_) addTransfers(group);
    for (const Transfer& t : transfers_) num_replicas_ = std::max({num_replicas_, t.from, t.to});
    num_replicas_ += transfers_.empty() ? 0 : 1;
  }

  void meet(RunContext& context, std::span<const Pointers> replicas) const override {
    if (replicas.size() < num_replicas_) {
      throw runtime_error("[gcl.move] needs " + std::to_string(num_replicas_) +
                          " replicas; got a run with " + std::to_string(replicas.size()) +
                          ". Run the program on as many as it was compiled for.");
    }
    if (pattern_ == "permute") fillTheRest(replicas);
    const auto n = static_cast<std::int64_t>(transfers_.size());
    if (n < 2 * context.pool.numThreads()) {
      for (const Transfer& t : transfers_)
        copy_.run(context.pool, from(replicas, t), to(replicas, t));
      return;
    }
    const std::int64_t grain = 1 + kGrainBytes / std::max<std::int64_t>(copy_.bytes(), 1);
    context.pool.parallelFor(n, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Transfer& t = transfers_[static_cast<std::size_t>(i)];
        copy_.run(from(replicas, t), to(replicas, t));
      }
    });
  }

 private:
  static constexpr std::int64_t kGrainBytes = 1 << 18;

  /// The copy of one transfer; if `moves` is false, it reads a single zero.
  StridedCopy copyOf(bool moves) const {
    const auto shape = slices_out_ ? inner(out_.shape) : out_.shape;
    const auto to = slices_out_ ? inner(out_.strides) : out_.strides;
    auto from = slices_in_ ? inner(in_.strides) : in_.strides;
    if (!moves) from.assign(shape.size(), 0);
    return {sizeOf(in_.type), shape, from, to};
  }

  void addTransfers(const std::vector<unsigned>& group) {
    if (pattern_ == "permute") {
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

  const std::byte* from(std::span<const Pointers> replicas, const Transfer& t) const {
    return replicas[t.from][0] + offset(in_, slices_in_, t.from_slice);
  }
  std::byte* to(std::span<const Pointers> replicas, const Transfer& t) const {
    return replicas[t.to][1] + offset(out_, slices_out_, t.to_slice);
  }
  static std::int64_t offset(const OperandDesc& operand, bool slices, std::int64_t slice) {
    if (!slices) return 0;
    return slice * operand.strides[0] * static_cast<std::int64_t>(sizeOf(operand.type));
  }

  void fillTheRest(std::span<const Pointers> replicas) const {
    static constexpr std::uint64_t kZero = 0;
    for (unsigned r = 0; r < replicas.size(); ++r) {
      const bool receives = std::any_of(transfers_.begin(), transfers_.end(),
                                        [&](const Transfer& t) { return t.to == r; });
      if (!receives) zeros_.run(reinterpret_cast<const std::byte*>(&kZero), replicas[r][1]);
    }
  }

  OperandDesc in_;
  OperandDesc out_;
  Groups groups_;
  std::string pattern_;
  bool slices_in_;
  bool slices_out_;
  StridedCopy copy_;
  StridedCopy zeros_;
  std::vector<Transfer> transfers_;
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
