#include "engine/build/Held.hpp"

#include <algorithm>
#include <unordered_map>

#include "engine/build/TileClasses.hpp"

namespace ipujax::engine::build {
namespace {

bool alwaysLive(const Storage& storage) {
  return storage.constant || storage.persistent || storage.input >= 0 || storage.output >= 0;
}

/// `always`: always live. A copy for another IPU is not, even if its storage is.
TilePart partOf(const Storage& storage, VariableUse use, bool always) {
  if (use == VariableUse::kStash) return TilePart::kStash;
  if (use == VariableUse::kAccumulator) return TilePart::kAccumulators;
  if (!always) return TilePart::kTemporaries;
  return storage.persistent || storage.output >= 0 ? TilePart::kState : TilePart::kParameters;
}

/// Converts live times from half positions to positions of steps. A variable is held during a step
/// that writes it, but not during the one that reads it last.
std::vector<Segment> positionsOf(const std::vector<Segment>& live, std::uint64_t last) {
  std::vector<Segment> positions;
  for (const Segment& segment : live) {
    const std::uint64_t begin = segment.begin / 2;
    const std::uint64_t end = std::min((segment.end + 1) / 2, last + 1);
    if (begin >= end) continue;
    if (!positions.empty() && begin <= positions.back().end + 1)
      positions.back().end = std::max(positions.back().end, end - 1);
    else
      positions.push_back({begin, end - 1});
  }
  return positions;
}

/// Each remote buffer has its own memory for the whole program.
void countRemote(Draft& draft, std::uint32_t s) {
  const Storage& storage = draft.storages[s];
  if (!alwaysLive(storage) && draft.accesses[s].empty()) return;
  StreamingAccount& streaming = draft.image.streaming;
  streaming.bytes += storage.bytes;
  if (storage.input < 0 && storage.output < 0) streaming.temporary_bytes += storage.bytes;
}

/// Live times in positions.
std::vector<Held> heldOf(Draft& draft) {
  std::vector<Held> all;
  const std::uint64_t last = draft.root.end;
  for (std::uint32_t s = 0; s < draft.storages.size(); ++s) {
    if (draft.find(s) != s) continue;
    const Storage& storage = draft.storages[s];
    if (draft.graph->variables[storage.variable].is_remote) {
      countRemote(draft, s);
      continue;
    }
    if (storage.constant && draft.accesses[s].empty()) continue;
    for (const Resident& resident : draft.residents[s]) {
      const bool always = alwaysLive(storage) && resident.variable == storage.variable;
      if (always) draft.image.memory.always_live_bytes += storage.bytes;
      all.push_back({s, resident.variable, partOf(storage, resident.use, always), always,
                     always ? std::vector<Segment>{{0, last}} : positionsOf(resident.live, last)});
    }
  }
  return all;
}

/// Converts positions to moments; `first` has the first position of each moment.
std::vector<Segment> momentsOf(const std::vector<Segment>& live,
                               const std::vector<std::uint64_t>& first) {
  std::vector<Segment> moments;
  for (const Segment& segment : live) {
    const auto from = std::ranges::lower_bound(first, segment.begin);
    const auto to = std::upper_bound(from, first.end(), segment.end);
    if (from == to) continue;
    const auto begin = static_cast<std::uint64_t>(from - first.begin());
    const auto end = static_cast<std::uint64_t>(to - first.begin()) - 1;
    if (!moments.empty() && begin == moments.back().end + 1)
      moments.back().end = end;
    else
      moments.push_back({begin, end});
  }
  return moments;
}

}  // namespace

TileParts temporariesOf(const Cost& cost) {
  TileParts parts;
  if (cost.host_bytes > 0) {
    parts[TilePart::kHostBuffers] = cost.temporary_bytes;
    return parts;
  }
  parts[TilePart::kRearrangement] = cost.rearranged_bytes;
  parts[TilePart::kExchangeBuffers] = cost.received_bytes;
  parts[TilePart::kTemporaries] =
      cost.temporary_bytes - cost.rearranged_bytes - cost.received_bytes;
  return parts;
}

History historyOf(Draft& draft) {
  History history;
  history.held = heldOf(draft);
  const std::size_t positions = std::size_t{draft.root.end} + 1;
  // A hash of the live variables, one number each, summed: equal hashes mean the same moment.
  std::vector<std::uint64_t> change(positions + 1);
  for (std::size_t h = 0; h < history.held.size(); ++h) {
    for (const Segment& live : history.held[h].live) {
      change[live.begin] += mixed(h);
      change[live.end + 1] -= mixed(h);
    }
  }
  const bool once = draft.image.mechanisms.has(Mechanism::kTiles);
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  std::vector<std::uint64_t> first;
  std::uint64_t live = 0;
  for (std::size_t p = 0; p < positions; ++p) {
    live += change[p];
    const std::int64_t step = p < draft.occurrences.size() ? draft.occurrences[p].step : -1;
    const std::uint64_t key = once ? live + mixed(~static_cast<std::uint64_t>(step)) : p;
    const auto next = static_cast<std::uint32_t>(first.size());
    const auto [found, fresh] = known.try_emplace(key, next);
    history.moment_of.push_back(found->second);
    if (!fresh) continue;
    first.push_back(p);
    history.steps.push_back(step);
  }
  for (Held& held : history.held) held.live = momentsOf(held.live, first);
  return history;
}

}  // namespace ipujax::engine::build
