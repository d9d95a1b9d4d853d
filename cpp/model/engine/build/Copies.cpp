#include <algorithm>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {
namespace {

/// A copy; a function's occurs at every call.
struct Candidate {
  std::uint32_t step;
  std::uint64_t bytes;
};

/// Merges the two sides of whole-variable copies where this has no effect: register coalescing,
/// with variables for registers. Loop carries, donated parameters and updates of copies become
/// in-place.
class Coalescer {
 public:
  explicit Coalescer(Draft& draft) : draft_(draft), steps_of_(draft.storages.size()) {
    for (std::uint32_t p = 0; p < draft.occurrences.size(); ++p) {
      const auto step = draft.occurrences[p].step;
      if (step < 0) continue;
      for (const auto& o : draft.image.steps[static_cast<std::size_t>(step)].operands) {
        auto& list = steps_of_[o.buffer];
        if (list.empty() || list.back() != p) list.push_back(p);
      }
    }
  }

  void run() {
    for (const auto& candidate : candidates()) tryMerge(candidate);
  }

 private:
  std::int64_t stepOf(std::uint32_t position) const { return draft_.occurrences[position].step; }

  const StepDesc& stepAt(std::uint32_t position) const {
    return draft_.image.steps[static_cast<std::size_t>(stepOf(position))];
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> found;
    for (std::uint32_t i = 0; i < draft_.image.steps.size(); ++i) {
      const StepDesc& step = draft_.image.steps[i];
      if (step.kernel == "engine.copy" && draft_.isWhole(step.operands[0]) &&
          draft_.isWhole(step.operands[1]))
        found.push_back({i, draft_.storages[step.operands[0].buffer].bytes});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bytes > b.bytes; });
    return found;
  }

  bool overlap(const std::vector<Segment>& a, const std::vector<Segment>& b) const {
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
      if (a[i].end < b[j].begin) {
        ++i;
      } else if (b[j].end < a[i].begin) {
        ++j;
      } else {
        return true;
      }
    }
    return false;
  }

  bool attributesAgree(const Storage& a, const Storage& b) const {
    const auto& variables = draft_.graph->variables;
    if (variables[a.variable].is_remote != variables[b.variable].is_remote) return false;
    if (a.constant || b.constant) return false;
    if (a.persistent || b.persistent) return false;
    if (a.input >= 0 && b.input >= 0) return false;
    if (a.output >= 0 && b.output >= 0) return false;
    return true;
  }

  bool writtenElsewhere(std::uint32_t a, std::uint32_t b, std::uint32_t copy) const {
    for (const auto storage : {a, b}) {
      for (const auto& access : draft_.accesses[storage]) {
        if (access.kind != AccessKind::kRead && stepOf(access.position) != copy) return true;
      }
    }
    return false;
  }

  /// An input's memory belongs to the caller: it may be written, or hold a result, only if that
  /// result may alias the input.
  bool bindingAgrees(std::uint32_t a, std::uint32_t b, std::uint32_t copy) const {
    const Storage& x = draft_.storages[a];
    const Storage& y = draft_.storages[b];
    const std::int32_t input = std::max(x.input, y.input);
    const std::int32_t output = std::max(x.output, y.output);
    if (input < 0) return true;
    if (output >= 0)
      return draft_.image.signature.output_alias[static_cast<std::size_t>(output)] == input;
    return !writtenElsewhere(a, b, copy);
  }

  bool sameView(const OperandDesc& a, const OperandDesc& b) const {
    if (sizeOf(a.type) != sizeOf(b.type) || a.offset != b.offset || a.shape != b.shape)
      return false;
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
    }
    return true;
  }

  /// A step that reads one side and writes the other must be correct if both share memory.
  bool stepAllows(const StepDesc& step, std::uint32_t a, std::uint32_t b) const {
    const auto side = [&](const OperandDesc& o) {
      const std::uint32_t s = draft_.find(o.buffer);
      return s == a ? 1 : s == b ? 2 : 0;
    };
    for (std::uint32_t w = 0; w < step.operands.size(); ++w) {
      if (step.operands[w].access == Access::kRead || side(step.operands[w]) == 0) continue;
      for (std::uint32_t r = 0; r < step.operands.size(); ++r) {
        if (r == w || side(step.operands[r]) == 0) continue;
        if (side(step.operands[r]) == side(step.operands[w])) continue;
        // A copy of one view onto itself does nothing, whichever copy it is.
        const bool declared =
            step.kernel == "engine.copy" || std::find(step.in_place.begin(), step.in_place.end(),
                                                      std::make_pair(r, w)) != step.in_place.end();
        if (!declared || !sameView(step.operands[r], step.operands[w])) return false;
      }
    }
    return true;
  }

  bool stepsAllow(std::uint32_t a, std::uint32_t b, std::uint32_t copy) const {
    const auto& x = steps_of_[a];
    const auto& y = steps_of_[b];
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < x.size() && j < y.size()) {
      if (x[i] < y[j]) {
        ++i;
      } else if (y[j] < x[i]) {
        ++j;
      } else {
        if (stepOf(x[i]) != copy && !stepAllows(stepAt(x[i]), a, b)) return false;
        ++i;
        ++j;
      }
    }
    return true;
  }

  template <class T, class Less>
  static void mergeSorted(std::vector<T>& into, std::vector<T>& from, Less less) {
    std::vector<T> both(into.size() + from.size());
    std::merge(into.begin(), into.end(), from.begin(), from.end(), both.begin(), less);
    into = std::move(both);
    from.clear();
  }

  static bool byBegin(const Segment& x, const Segment& y) { return x.begin < y.begin; }

  void tryMerge(const Candidate& candidate) {
    const StepDesc& step = draft_.image.steps[candidate.step];
    const std::uint32_t a = draft_.find(step.operands[0].buffer);
    const std::uint32_t b = draft_.find(step.operands[1].buffer);
    if (a == b) return remove(candidate, a, b);
    if (draft_.storages[a].bytes != draft_.storages[b].bytes) return;
    if (!attributesAgree(draft_.storages[a], draft_.storages[b])) return;
    if (!bindingAgrees(a, b, candidate.step)) return;
    if (overlap(draft_.live[a], draft_.live[b])) return;
    if (!stepsAllow(a, b, candidate.step)) return;
    remove(candidate, a, b);
    merge(a, b);
  }

  void remove(const Candidate& candidate, std::uint32_t a, std::uint32_t b) {
    StepDesc& step = draft_.image.steps[candidate.step];
    const auto& maps = draft_.graph->variables;
    const auto& x = maps[draft_.storages[a].variable].map;
    const auto& y = maps[draft_.storages[b].variable].map;
    if (x == y || x->regions == y->regions) {
      draft_.step_removed[candidate.step] = true;
    } else {
      // The host needs no copy, but on the tiles the elements still move: keep the cost.
      step.kernel = "engine.account";
      step.operands.clear();
    }
  }

  std::uint64_t ipusOf(const Resident& resident) const {
    return engine::ipusOf(*draft_.graph->variables[resident.variable].map,
                          draft_.graph->system.machine.tiles_per_ipu);
  }

  /// Merges residents of the same IPUs; the variable is that of the one in `first`.
  void mergeResidents(std::vector<Resident>& first, std::vector<Resident>& second) const {
    for (Resident& other : second) {
      const auto same = std::ranges::find_if(
          first, [&](const Resident& r) { return ipusOf(r) == ipusOf(other); });
      if (same == first.end()) {
        first.push_back(std::move(other));
        continue;
      }
      same->use = std::max(same->use, other.use);
      mergeSorted(same->live, other.live, byBegin);
    }
    second.clear();
  }

  void merge(std::uint32_t a, std::uint32_t b) {
    draft_.merged_into[b] = a;
    Storage& into = draft_.storages[a];
    const Storage& from = draft_.storages[b];
    if (from.input >= 0 || from.output >= 0) {
      into.variable = from.variable;
      std::swap(draft_.residents[a], draft_.residents[b]);
    }
    mergeResidents(draft_.residents[a], draft_.residents[b]);
    into.input = std::max(into.input, from.input);
    into.output = std::max(into.output, from.output);
    const auto by_position = [](const StorageAccess& x, const StorageAccess& y) {
      return x.position < y.position;
    };
    mergeSorted(draft_.live[a], draft_.live[b], byBegin);
    mergeSorted(draft_.accesses[a], draft_.accesses[b], by_position);
    mergeSorted(steps_of_[a], steps_of_[b], std::less<>());
    steps_of_[a].erase(std::unique(steps_of_[a].begin(), steps_of_[a].end()), steps_of_[a].end());
  }

  Draft& draft_;
  std::vector<std::vector<std::uint32_t>> steps_of_;  ///< positions, by storage
};

}  // namespace

void removeCopies(Draft& draft) { Coalescer(draft).run(); }

}  // namespace ipujax::engine::build
