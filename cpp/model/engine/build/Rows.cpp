#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/account/VertexCounts.hpp"
#include "engine/build/Occurrences.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/Kernel.hpp"

/// Adjacent steps that work row by row on the same rows run as one, a few rows at a time, so that
/// the results of one are still in the cache when the next one reads them. A softmax:
///
///   popops.reduce %x -> %m               engine.account (of each of the first three)
///   popx.map      %x, %m -> %e           engine.rows %x -> %y
///   popops.reduce %e -> %s                 popops.reduce, popx.map, popops.reduce, popx.map
///   popx.map      %e, %s -> %y             with %m, %e, %s in the memory of a thread
///
/// The account of the tiles is made before, so it is that of the separate steps.
namespace ipujax::engine::build {
namespace {

constexpr std::int64_t kFewestRows = 8;
/// Below this the elements stay in the caches between the steps anyway.
constexpr std::int64_t kFewestElements = 8192;
/// Elements of the widest operand in one chunk.
constexpr std::int64_t kChunkElements = 16384;
/// Longer rows are better shared between threads.
constexpr std::int64_t kLongestRow = 65536;
constexpr std::size_t kMostSteps = 32;
constexpr std::size_t kMostOperands = 64;

/// The operand with `rows` as its first dimension, if its first dimensions are these rows.
std::optional<OperandDesc> byRows(const OperandDesc& o, std::int64_t rows) {
  std::int64_t n = 1;
  std::size_t split = 0;
  while (split < o.shape.size() && n < rows) n *= o.shape[split++];
  const auto stride = o.strideOf(0, split);
  if (n != rows || !stride) return std::nullopt;
  OperandDesc result = o;
  result.shape.assign(o.shape.begin() + static_cast<std::ptrdiff_t>(split), o.shape.end());
  result.strides.assign(o.strides.begin() + static_cast<std::ptrdiff_t>(split), o.strides.end());
  result.shape.insert(result.shape.begin(), rows);
  result.strides.insert(result.strides.begin(), *stride);
  return result;
}

std::optional<StepDesc> mapByRows(const StepDesc& map, std::int64_t rows) {
  StepDesc inner = map;
  for (OperandDesc& o : inner.operands) {
    auto operand = byRows(o, rows);
    if (!operand) return std::nullopt;
    o = std::move(*operand);
  }
  // Random bits depend on how the elements are cut into calls.
  if (expr::ExprProgram::fromIntegers(map.attributes.integers("expr")).isRandom())
    return std::nullopt;
  return inner;
}

std::int64_t rowsKept(const StepDesc& reduce) {
  const auto written = std::ranges::find_if(
      reduce.operands, [](const OperandDesc& o) { return o.access != Access::kRead; });
  return written->numElements();
}

/// The reduction by rows, if it keeps exactly the rows.
std::optional<StepDesc> reductionByRows(const StepDesc& reduce, std::int64_t rows) {
  if (rowsKept(reduce) != rows) return std::nullopt;
  StepDesc inner = reduce;
  const std::size_t rank = reduce.operands[0].shape.size();
  for (OperandDesc& o : inner.operands) {
    if (o.access == Access::kRead && o.numElements() == 1) {
      o.shape.clear();
      o.strides.clear();
      continue;
    }
    auto operand = byRows(o, rows);
    if (!operand) return std::nullopt;
    o = std::move(*operand);
  }
  const std::size_t dropped = rank + 1 - inner.operands[0].shape.size();
  Attributes::Integers dims = reduce.attributes.integers("dims");
  for (std::int64_t& d : dims) d -= static_cast<std::int64_t>(dropped) - 1;
  if (std::ranges::any_of(dims, [](std::int64_t d) { return d < 1; })) return std::nullopt;
  inner.attributes.set("dims", dims);
  return inner;
}

bool isReduction(const StepDesc& step) { return isReduction(roleOf(step)); }

bool isLargeReduction(const StepDesc& step) {
  return isReduction(step) && rowsKept(step) >= kFewestRows &&
         step.operands[0].numElements() >= kFewestElements;
}

std::optional<StepDesc> stepByRows(const StepDesc& step, std::int64_t rows) {
  auto inner = roleOf(step) == KernelRole::kElementwise ? mapByRows(step, rows)
               : isReduction(step)                      ? reductionByRows(step, rows)
                                                        : std::nullopt;
  if (!inner || inner->operands.size() > kMostOperands) return std::nullopt;
  for (const OperandDesc& o : inner->operands) {
    if (o.access != Access::kRead && !o.isContiguous()) return std::nullopt;
  }
  return inner;
}

/// Steps of one sequence, in order, that work on the same rows.
struct Group {
  struct Member {
    std::uint32_t position = 0;
    StepDesc* step = nullptr;
    StepDesc inner;
  };
  std::int64_t rows = 0;
  std::vector<Member> members;
};

class RowFuser {
 public:
  explicit RowFuser(Draft& draft) : draft_(draft), occurrences_(draft) {}

  void run(const Span& span) {
    if (span.kind == Span::Kind::kSequence) fuseIn(span);
    for (const Span& child : span.children) run(child);
  }

 private:
  void fuseIn(const Span& sequence) {
    std::size_t begin = 0;
    std::size_t i = 0;
    while (i < sequence.children.size()) {
      const StepDesc* step = stepOf(sequence.children[i]);
      if (!step || !isLargeReduction(*step)) {
        ++i;
        continue;
      }
      auto [group, end] = around(sequence, begin, i);
      if (isWorthIt(group)) merge(group);
      begin = end;
      i = std::max(i, end);  // where the group ended before it, the reduction is tried again
    }
  }

  /// The step of a leaf; null for others.
  StepDesc* stepOf(const Span& span) {
    if (span.kind != Span::Kind::kLeaf) return nullptr;
    const auto step = draft_.occurrences[span.begin].step;
    if (step < 0) return nullptr;
    return &draft_.image.steps[static_cast<std::size_t>(step)];
  }

  bool doesNothing(const Span& span) const {
    if (span.kind != Span::Kind::kLeaf) return false;
    const auto step = draft_.occurrences[span.begin].step;
    if (step < 0) return false;
    return draft_.step_removed[static_cast<std::size_t>(step)] ||
           draft_.image.steps[static_cast<std::size_t>(step)].kernel == "engine.account";
  }

  /// The steps around a reduction, from `begin` on, that work on its rows, and where they end.
  std::pair<Group, std::size_t> around(const Span& sequence, std::size_t begin, std::size_t at) {
    Group group;
    group.rows = rowsKept(*stepOf(sequence.children[at]));
    std::size_t first = at;
    while (first > begin && at - first < kMostSteps &&
           belongs(sequence.children[first - 1], group.rows))
      --first;
    std::size_t end = first;
    for (; end < sequence.children.size() && group.members.size() < kMostSteps; ++end) {
      const Span& child = sequence.children[end];
      if (doesNothing(child)) continue;
      StepDesc* step = stepOf(child);
      auto inner = step ? stepByRows(*step, group.rows) : std::nullopt;
      if (!inner) break;
      group.members.push_back({child.begin, step, std::move(*inner)});
      if (occurrences_.together(group.members.front().position, child.begin) && agree(group))
        continue;
      group.members.pop_back();
      break;
    }
    trim(group);
    return {std::move(group), std::max(end, first + 1)};
  }

  bool belongs(const Span& span, std::int64_t rows) {
    if (doesNothing(span)) return true;
    const StepDesc* step = stepOf(span);
    return step && stepByRows(*step, rows);
  }

  /// Whether all members access written storages by the same rows: then running chunk by chunk is
  /// equivalent to running step by step.
  bool agree(const Group& group) const {
    std::set<std::uint32_t> written;
    for (const auto& member : group.members) {
      for (const OperandDesc& o : member.inner.operands) {
        if (o.access != Access::kRead) written.insert(draft_.find(o.buffer));
      }
    }
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> rows;  // offset, bytes of a row
    for (const auto& member : group.members) {
      for (const OperandDesc& o : member.inner.operands) {
        const std::uint32_t storage = draft_.find(o.buffer);
        if (!written.contains(storage)) continue;
        if (o.shape.empty()) return false;
        const auto bytes = static_cast<std::int64_t>(sizeOf(o.type));
        const std::pair place{o.offset * bytes, rowBytes(o)};
        if (!isRowWise(o) || rows.emplace(storage, place).first->second != place) return false;
      }
    }
    return true;
  }

  /// Bytes from a row to the next one.
  static std::int64_t rowBytes(const OperandDesc& o) {
    return o.strides[0] * static_cast<std::int64_t>(sizeOf(o.type));
  }

  /// Whether each row lies between its start and the next one's.
  static bool isRowWise(const OperandDesc& o) {
    std::int64_t last = 0;
    for (std::size_t d = 1; d < o.shape.size(); ++d) {
      if (o.strides[d] < 0) return false;
      last += (o.shape[d] - 1) * o.strides[d];
    }
    return last < o.strides[0];
  }

  /// Drops steps at both ends that share no large storage with another one.
  void trim(Group& group) const {
    std::map<std::uint32_t, int> users;
    for (const auto& member : group.members) {
      for (const auto storage : largeStoragesOf(member)) ++users[storage];
    }
    const auto isAlone = [&](const Group::Member& member) {
      return std::ranges::none_of(largeStoragesOf(member),
                                  [&](std::uint32_t s) { return users[s] > 1; });
    };
    while (!group.members.empty() && isAlone(group.members.back())) group.members.pop_back();
    while (!group.members.empty() && isAlone(group.members.front()))
      group.members.erase(group.members.begin());
  }

  std::set<std::uint32_t> largeStoragesOf(const Group::Member& member) const {
    std::set<std::uint32_t> large;
    for (const OperandDesc& o : member.inner.operands) {
      if (o.shape.size() > 1 && o.strides[0] != 0 && o.numElements() >= kFewestElements &&
          o.strideOf(1, o.shape.size()) != 0)
        large.insert(draft_.find(o.buffer));
    }
    return large;
  }

  static std::int64_t widestRow(const Group& group) {
    std::int64_t most = 1;
    for (const auto& member : group.members) {
      for (const OperandDesc& o : member.inner.operands)
        most = std::max(most, o.shape.empty() ? 1 : o.numElements() / group.rows);
    }
    return most;
  }

  bool isWorthIt(const Group& group) const {
    return group.members.size() > 1 && !isMappedReduction(group) && widestRow(group) <= kLongestRow;
  }

  /// Whether it is an elementwise step and its only reader, a reduction, as in Reductions.cpp.
  bool isMappedReduction(const Group& group) const {
    if (group.members.size() != 2) return false;
    const StepDesc& map = *group.members[0].step;
    const StepDesc& reduce = *group.members[1].step;
    return roleOf(map) == KernelRole::kElementwise && roleOf(reduce) == KernelRole::kReduction &&
           isLocal(group, draft_.find(reduce.operands[0].buffer));
  }

  /// Whether only the group uses a storage, and writes it before reading it.
  bool isLocal(const Group& group, std::uint32_t storage) const {
    const Storage& s = draft_.storages[storage];
    if (s.input >= 0 || s.output >= 0 || s.constant || s.persistent) return false;
    bool first = true;
    for (const auto& access : draft_.accesses[storage]) {
      const auto step = draft_.occurrences[access.position].step;
      if (step >= 0 && draft_.step_removed[static_cast<std::size_t>(step)]) continue;
      if (first && access.kind != AccessKind::kWriteAll) return false;
      first = false;
      const bool is_member = std::ranges::any_of(group.members, [&](const auto& member) {
        return draft_.occurrences[member.position].step == step;
      });
      if (!is_member) return false;
    }
    return true;
  }

  /// Replaces the last step by all of them; the others only keep their cost.
  void merge(Group& group) {
    StepDesc fused;
    fused.kernel = "engine.rows";
    const Attributes::Integers locals = renumber(group, fused.operands);
    fused.attributes.set("rows", group.rows)
        .set("chunk", std::clamp<std::int64_t>(kChunkElements / widestRow(group), 1, group.rows))
        .set("locals", locals);
    StepDesc& last = *group.members.back().step;
    fused.cost = last.cost;
    fused.debug = last.debug;
    copyLibraryVertices(last, fused);
    for (auto& member : group.members) {
      fused.inner.push_back(std::move(member.inner));
      StepDesc account;
      account.kernel = "engine.account";
      account.cost = member.step->cost;
      account.debug = member.step->debug;
      copyLibraryVertices(*member.step, account);
      *member.step = std::move(account);
    }
    last = std::move(fused);
  }

  /// Numbers the inner operands: first those in memory that others see, which it adds to
  /// `operands`, then locals. Returns the bytes per row of each local.
  Attributes::Integers renumber(Group& group, std::vector<OperandDesc>& operands) {
    std::map<std::uint32_t, std::uint32_t> locals;  // storage to number
    Attributes::Integers row_bytes;
    const auto each = [&](const auto& f) {
      for (auto& member : group.members) {
        for (OperandDesc& o : member.inner.operands) f(draft_.find(o.buffer), o);
      }
    };
    each([&](std::uint32_t storage, const OperandDesc& o) {
      if (locals.contains(storage)) return;
      if (isLocal(group, storage)) {
        locals.emplace(storage, static_cast<std::uint32_t>(row_bytes.size()));
        row_bytes.push_back(rowBytes(o));
      } else {
        operands.push_back(o);
        keepAlive(storage, occurrences_.last(group.members.back().position));
      }
    });
    std::uint32_t next = 0;
    each([&](std::uint32_t storage, OperandDesc& o) {
      const auto local = locals.find(storage);
      o.buffer = local == locals.end()
                     ? next++
                     : static_cast<std::uint32_t>(operands.size()) + local->second;
    });
    return row_bytes;
  }

  /// Keeps a storage that the group uses alive from the first chunk to the last.
  void keepAlive(std::uint32_t storage, std::uint32_t position) {
    auto& live = draft_.live[storage];
    if (!live.empty()) live.back().end = std::max(live.back().end, 2 * std::uint64_t{position} + 1);
  }

  Draft& draft_;
  Occurrences occurrences_;
};

}  // namespace

void fuseRows(Draft& draft) { RowFuser(draft).run(draft.root); }

}  // namespace ipujax::engine::build
