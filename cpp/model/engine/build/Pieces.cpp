#include <algorithm>
#include <optional>

#include "engine/build/Draft.hpp"
#include "engine/build/Occurrences.hpp"
#include "engine/image/Overlap.hpp"
#include "engine/kernels/Kernel.hpp"

/// A step whose result is only copied into a piece of a larger array computes it there. For a part
/// of a concatenation:
///
///   popx.map    %x -> %t                popx.map %x -> %y[0:8]
///   engine.copy %t -> %y[0:8]           engine.account
///
/// The account of the tiles is made before, so it includes both steps.
namespace ipujax::engine::build {
namespace {

/// Whether two views of one buffer have no element in common.
bool areApart(const OperandDesc& a, const OperandDesc& b) {
  Footprint x;
  Footprint y;
  x.assign(a, a.offset * static_cast<std::int64_t>(sizeOf(a.type)));
  y.assign(b, b.offset * static_cast<std::int64_t>(sizeOf(b.type)));
  return engine::areApart(x, y);
}

/// View of a step's whole result inside the target of a copy of it.
std::optional<OperandDesc> viewIn(const OperandDesc& target, const std::vector<std::int64_t>& shape,
                                  const OperandDesc& result) {
  OperandDesc view = result;
  view.buffer = target.buffer;
  view.offset = target.offset;
  if (target.isContiguous()) return view;
  std::size_t d = 0;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1) continue;
    while (d < shape.size() && shape[d] == 1) ++d;
    if (d == shape.size() || shape[d] != view.shape[i]) return std::nullopt;
    view.strides[i] = target.strides[d++];
  }
  return view;
}

class PieceMaker {
 public:
  explicit PieceMaker(Draft& draft) : draft_(draft), occurrences_(draft) {}

  void run() {
    for (std::uint32_t p = 0; p < draft_.occurrences.size(); ++p)
      if (isThere(p) && stepAt(p).kernel == "engine.copy") tryCopy(p);
  }

 private:
  std::int64_t stepOf(std::uint32_t position) const { return draft_.occurrences[position].step; }
  StepDesc& stepAt(std::uint32_t position) {
    return draft_.image.steps[static_cast<std::size_t>(stepOf(position))];
  }
  bool isThere(std::uint32_t position) const {
    return stepOf(position) >= 0 &&
           !draft_.step_removed[static_cast<std::size_t>(stepOf(position))];
  }

  void tryCopy(std::uint32_t copies) {
    const OperandDesc from = stepAt(copies).operands[0];
    const OperandDesc to = stepAt(copies).operands[1];
    const std::uint32_t whole = draft_.find(from.buffer);
    const std::uint32_t target = draft_.find(to.buffer);
    if (whole == target || !isTemporary(whole) || isRemote(target)) return;
    if (!draft_.isWhole(from) || from.type != to.type) return;
    const auto makes = writerBefore(whole, copies);
    if (!makes || !occurrences_.together(*makes, copies)) return;
    OperandDesc* result = resultOf(stepAt(*makes), whole, target);
    if (!result || result->type != to.type) return;
    const auto view = viewIn(to, from.shape, *result);
    if (!view || !mayWrite(stepAt(*makes), *view)) return;
    if (isTouched(target, to, *makes, copies)) return;
    *result = *view;
    move(whole, target, *makes, copies);
  }

  bool isRemote(std::uint32_t storage) const {
    return draft_.graph->variables[draft_.storages[storage].variable].is_remote;
  }
  bool isTemporary(std::uint32_t storage) const {
    const Storage& s = draft_.storages[storage];
    return s.input < 0 && s.output < 0 && !s.constant && !s.persistent && !isRemote(storage);
  }
  /// The only step besides the copy that accesses a storage.
  std::optional<std::uint32_t> writerBefore(std::uint32_t storage, std::uint32_t copies) const {
    std::optional<std::uint32_t> writer;
    for (const auto& access : draft_.accesses[storage]) {
      if (stepOf(access.position) == stepOf(copies)) continue;
      if (!isThere(access.position)) return std::nullopt;
      if (writer && stepOf(access.position) != stepOf(*writer)) return std::nullopt;
      if (!writer || access.position < copies) writer = access.position;
    }
    return writer && *writer < copies ? writer : std::nullopt;
  }

  /// The operand through which a step writes all of a storage; null if the step accesses it or the
  /// target in any other way.
  OperandDesc* resultOf(StepDesc& step, std::uint32_t storage, std::uint32_t target) const {
    OperandDesc* result = nullptr;
    for (OperandDesc& o : step.operands) {
      const std::uint32_t s = draft_.find(o.buffer);
      if (s == target || (s == storage && result)) return nullptr;
      if (s == storage) result = &o;
    }
    return result && result->access == Access::kWrite && draft_.isWhole(*result) ? result : nullptr;
  }

  /// Expressions and copies may write any view, many other steps only contiguous ones.
  static bool mayWrite(const StepDesc& step, const OperandDesc& view) {
    const KernelRole role = roleOf(step);
    if (role == KernelRole::kElementwise || step.kernel == "engine.copy") return true;
    return view.isContiguous() && role != KernelRole::kCollective;
  }

  bool isTouched(std::uint32_t target, const OperandDesc& view, std::uint32_t from,
                 std::uint32_t to) {
    return std::ranges::any_of(draft_.accesses[target], [&](const StorageAccess& access) {
      if (access.position <= from || access.position >= to) return false;
      if (stepOf(access.position) < 0) return true;
      if (!isThere(access.position)) return false;
      return std::ranges::any_of(stepAt(access.position).operands, [&](const OperandDesc& o) {
        return draft_.find(o.buffer) == target && !areApart(o, view);
      });
    });
  }

  void move(std::uint32_t whole, std::uint32_t target, std::uint32_t makes, std::uint32_t copies) {
    auto& accesses = draft_.accesses[target];
    const auto isCopy = [&](const StorageAccess& a) {
      return stepOf(a.position) == stepOf(copies);
    };
    const AccessKind kind = std::ranges::find_if(accesses, isCopy)->kind;
    std::erase_if(accesses, isCopy);
    for (const auto& access : draft_.accesses[whole])
      if (stepOf(access.position) == stepOf(makes)) accesses.push_back({access.position, kind});
    std::ranges::stable_sort(accesses, {}, &StorageAccess::position);
    draft_.live[target] = inEither(draft_.live[target], draft_.live[whole]);
    draft_.accesses[whole].clear();
    draft_.live[whole].clear();
    StepDesc& copy = stepAt(copies);
    copy.kernel = "engine.account";
    copy.operands.clear();
    copy.in_place.clear();
  }

  static std::vector<Segment> inEither(std::vector<Segment> live,
                                       const std::vector<Segment>& more) {
    live.insert(live.end(), more.begin(), more.end());
    std::ranges::sort(live, {}, &Segment::begin);
    std::vector<Segment> joined;
    for (const Segment& segment : live) {
      if (joined.empty() || joined.back().end < segment.begin) {
        joined.push_back(segment);
      } else {
        joined.back().end = std::max(joined.back().end, segment.end);
      }
    }
    return joined;
  }

  Draft& draft_;
  Occurrences occurrences_;
};

}  // namespace

void makePieces(Draft& draft) { PieceMaker(draft).run(); }

}  // namespace ipujax::engine::build
