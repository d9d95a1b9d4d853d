#include <algorithm>
#include <map>
#include <utility>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {
namespace {

/// Backward liveness of one storage over the span tree. Only subtrees with accesses are visited.
class LiveRange {
 public:
  LiveRange(const std::vector<StorageAccess>& accesses, std::vector<Segment>& segments)
      : accesses_(accesses), segments_(segments) {}

  bool through(const Span& span, bool live_out) {
    if (!touches(span)) {
      if (live_out) emit(2 * std::uint64_t{span.begin}, 2 * std::uint64_t{span.end});
      return live_out;
    }
    switch (span.kind) {
      case Span::Kind::kLeaf:
        return throughLeaf(span, live_out);
      case Span::Kind::kSequence:
        return throughSequence(span, live_out);
      case Span::Kind::kRepeat:
        return throughRepeat(span, live_out);
      case Span::Kind::kWhile:
        return throughWhile(span, live_out);
      case Span::Kind::kBranches:
        return throughBranches(span, live_out);
    }
    return live_out;
  }

 private:
  bool touches(const Span& span) const {
    const auto first =
        std::lower_bound(accesses_.begin(), accesses_.end(), span.begin,
                         [](const StorageAccess& a, std::uint32_t p) { return a.position < p; });
    return first != accesses_.end() && first->position < span.end;
  }

  void emit(std::uint64_t begin, std::uint64_t end) {
    if (!dry_ && begin <= end) segments_.push_back({begin, end});
  }

  bool throughLeaf(const Span& span, bool live_out) {
    const std::uint64_t at = 2 * std::uint64_t{span.begin};
    bool reads = false;
    bool writes_all = false;
    bool writes_some = false;
    for (auto a = std::lower_bound(
             accesses_.begin(), accesses_.end(), span.begin,
             [](const StorageAccess&x, std::uint32_t p) { return x.position < p; });
         a != accesses_.end() && a->position == span.begin; ++a) {
      reads |= a->kind == AccessKind::kRead;
      writes_all |= a->kind == AccessKind::kWriteAll;
      writes_some |= a->kind == AccessKind::kWriteSome;
    }
    const bool writes = writes_all || writes_some;
    if (live_out || writes) emit(at + 1, at + (live_out ? 2 : 1));
    const bool live_in = reads || writes_some || (live_out && !writes_all);
    if (live_in) emit(at, at + (live_out && !writes_all ? 1 : 0));
    return live_in;
  }

  bool throughSequence(const Span& span, bool live) {
    std::uint32_t end = span.end;
    std::size_t i = span.children.size();
    while (i > 0) {
      // Skip to the last child with an access; the storage lives through everything after it.
      const auto past =
          std::lower_bound(accesses_.begin(), accesses_.end(), end,
                           [](const StorageAccess& a, std::uint32_t p) { return a.position < p; });
      if (past == accesses_.begin() || std::prev(past)->position < span.begin) break;
      const std::uint32_t position = std::prev(past)->position;
      const auto after = std::upper_bound(
          span.children.begin(), span.children.begin() + static_cast<std::ptrdiff_t>(i), position,
          [](std::uint32_t p, const Span& child) { return p < child.begin; });
      i = static_cast<std::size_t>(after - span.children.begin()) - 1;
      const Span& child = span.children[i];
      if (live) emit(2 * std::uint64_t{child.end}, 2 * std::uint64_t{end});
      live = through(child, live);
      end = child.begin;
    }
    if (live) emit(2 * std::uint64_t{span.begin}, 2 * std::uint64_t{end});
    return live;
  }

  bool throughRepeat(const Span& span, bool live_out) {
    const Span& body = span.children[0];
    const bool carried = liveBefore(body, live_out);
    return throughPart(body, live_out || carried);
  }

  bool throughWhile(const Span& span, bool live_out) {
    const Span& condition = span.children[0];
    const Span& body = span.children[1];
    bool live_at_start = liveBefore(condition, liveBefore(body, live_out) || live_out);
    live_at_start = liveBefore(condition, liveBefore(body, live_at_start) || live_out);
    const bool live_in_body = throughPart(body, live_at_start);
    return throughPart(condition, live_in_body || live_out);
  }

  bool throughBranches(const Span& span, bool live_out) {
    bool live_in = false;
    for (const auto& branch : span.children) live_in |= through(branch, live_out);
    if (live_in) emit(2 * std::uint64_t{span.begin}, 2 * std::uint64_t{span.begin});
    return live_in;
  }

  bool throughPart(const Span& part, bool live_out) {
    return dry_ ? liveBefore(part, live_out) : through(part, live_out);
  }

  /// Result of `through` for a part of a loop, without segments. Memoised: every loop around a part
  /// asks several times, so nested loops would otherwise take exponential time.
  bool liveBefore(const Span& part, bool live_out) {
    const auto key = std::make_pair(&part, live_out);
    if (const auto found = live_before_.find(key); found != live_before_.end())
      return found->second;
    const bool was_dry = std::exchange(dry_, true);
    const bool live_in = through(part, live_out);
    dry_ = was_dry;
    return live_before_[key] = live_in;
  }

  const std::vector<StorageAccess>& accesses_;
  std::vector<Segment>& segments_;
  std::map<std::pair<const Span*, bool>, bool> live_before_;
  bool dry_ = false;
};

void sortAndJoin(std::vector<Segment>& segments) {
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  std::size_t n = 0;
  for (const auto& segment : segments) {
    if (n > 0 && segment.begin <= segments[n - 1].end) {
      segments[n - 1].end = std::max(segments[n - 1].end, segment.end);
    } else {
      segments[n++] = segment;
    }
  }
  segments.resize(n);
}

/// Such a storage has its value before the run and must keep it afterwards.
bool isOnlyRead(const Storage& storage, const std::vector<StorageAccess>& accesses) {
  return storage.input < 0 && !accesses.empty() &&
         std::ranges::all_of(accesses,
                             [](const StorageAccess& a) { return a.kind == AccessKind::kRead; });
}

}  // namespace

void findLiveRanges(Draft& draft) {
  draft.live.assign(draft.storages.size(), {});
  const std::uint64_t end = 2 * std::uint64_t{draft.root.end};
  for (std::size_t s = 0; s < draft.storages.size(); ++s) {
    Storage& storage = draft.storages[s];
    auto& live = draft.live[s];
    storage.persistent |= isOnlyRead(storage, draft.accesses[s]);
    if (storage.persistent || storage.constant) {
      live = {{0, end}};
      continue;
    }
    LiveRange(draft.accesses[s], live).through(draft.root, storage.output >= 0);
    sortAndJoin(live);
  }
}

}  // namespace ipujax::engine::build
