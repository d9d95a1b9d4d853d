#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/build/Draft.hpp"
#include "engine/build/ProfileFill.hpp"

namespace ipujax::engine::build {
namespace {

constexpr std::size_t kLargestListed = 10;

/// A resident as the account sees it: its variable's tiles, for how long.
struct Held {
  std::uint32_t variable;
  Part part;
  bool always_live = false;
};

struct Change {
  std::uint64_t time;
  bool starts;
  std::uint32_t held;
};

/// When a tile is fullest.
struct Peak {
  std::size_t changes = 0;  ///< that came before
  std::uint32_t tile = 0;
  std::uint64_t temporary = 0;  ///< of the step that runs then
};

/// Sweeps the program in time and keeps the bytes live on each tile.
class TileSweep {
 public:
  explicit TileSweep(Draft& draft)
      : draft_(draft),
        tiles_(draft.graph->system.numTiles(), 0),
        fullest_(draft.graph->system.num_ipus),
        peaks_(fullest_.size()),
        changed_(fullest_.size(), true) {
    draft.image.ipus.resize(fullest_.size());
  }

  void run() {
    collectChanges();
    for (; num_applied_ < changes_.size(); ++num_applied_) {
      const Change& change = changes_[num_applied_];
      while (position_ < draft_.occurrences.size() && 2 * position_ + 1 < change.time) stepAt();
      apply(held_[change.held], change.starts);
    }
    while (position_ < draft_.occurrences.size()) stepAt();
    finish();
  }

 private:
  const Variable& variableOf(const Held& held) const {
    return draft_.graph->variables[held.variable];
  }

  std::uint64_t bytesOf(const Held& held) const {
    return variableOf(held).elements * sizeOf(variableOf(held).type);
  }

  std::uint64_t bytesOn(const Held& held, std::uint32_t tile) const {
    const auto& counts = variableOf(held).map->per_tile;
    return tile < counts.size() ? counts[tile] * sizeOf(variableOf(held).type) : 0;
  }

  static bool alwaysLive(const Storage& storage) {
    return storage.constant || storage.persistent || storage.input >= 0 || storage.output >= 0;
  }

  static Part partOf(const Storage& storage, VariableUse use) {
    if (use == VariableUse::kStash) return Part::kStash;
    if (use == VariableUse::kAccumulator) return Part::kAccumulators;
    if (!alwaysLive(storage)) return Part::kTemporaries;
    return storage.persistent || storage.output >= 0 ? Part::kState : Part::kParameters;
  }

  /// A step that reads an old value and writes a new one holds the memory once.
  void addChanges(const std::vector<Segment>& live, std::uint64_t end, std::uint32_t held) {
    for (std::size_t i = 0; i < live.size(); ++i) {
      const std::uint64_t begin = live[i].begin & ~std::uint64_t{1};
      while (i + 1 < live.size() && (live[i + 1].begin & ~std::uint64_t{1}) <= live[i].end) ++i;
      changes_.push_back({begin, true, held});
      changes_.push_back({std::min(live[i].end, end) + 1, false, held});
    }
  }

  void collectChanges() {
    const std::uint64_t end = 2 * std::uint64_t{draft_.root.end} + 1;
    for (std::uint32_t s = 0; s < draft_.storages.size(); ++s) {
      if (draft_.find(s) != s) continue;
      const Storage& storage = draft_.storages[s];
      if (draft_.graph->variables[storage.variable].is_remote) {
        countRemote(s);
        continue;
      }
      if (storage.constant && draft_.accesses[s].empty()) continue;
      for (const Resident& resident : draft_.residents[s]) {
        const auto held = static_cast<std::uint32_t>(held_.size());
        const bool always = alwaysLive(storage) && resident.variable == storage.variable;
        held_.push_back({resident.variable, partOf(storage, resident.use), always});
        if (always) {
          draft_.image.memory.always_live_bytes += storage.bytes;
          changes_.push_back({0, true, held});
        } else {
          addChanges(resident.live, end, held);
        }
      }
    }
    std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.starts < b.starts;
    });
  }

  /// Remote buffers have places of their own for the whole program.
  void countRemote(std::uint32_t s) {
    const Storage& storage = draft_.storages[s];
    if (!alwaysLive(storage) && draft_.accesses[s].empty()) return;
    StreamingAccount& streaming = draft_.image.streaming;
    streaming.bytes += storage.bytes;
    if (storage.input < 0 && storage.output < 0) streaming.temporary_bytes += storage.bytes;
  }

  /// The first tile that holds something of a variable; the last entry is not zero either.
  std::size_t firstTileOf(const Variable& variable) {
    const auto [found, fresh] = first_tiles_.try_emplace(variable.map.get());
    if (fresh) {
      const auto& counts = variable.map->per_tile;
      const auto first = std::ranges::find_if(counts, [](auto count) { return count != 0; });
      found->second = static_cast<std::size_t>(first - counts.begin());
    }
    return found->second;
  }

  void apply(const Held& held, bool starts) {
    const auto& variable = variableOf(held);
    const auto bytes = static_cast<std::int64_t>(sizeOf(variable.type)) * (starts ? 1 : -1);
    live_bytes_ += (starts ? 1 : -1) * static_cast<std::int64_t>(bytesOf(held));
    const auto& counts = variable.map->per_tile;
    const std::size_t first = firstTileOf(variable);
    for (std::size_t t = first; t < counts.size(); ++t)
      tiles_[t] += bytes * static_cast<std::int64_t>(counts[t]);
    for (std::size_t i = first / tilesPerIpu(); i * tilesPerIpu() < counts.size(); ++i)
      changed_[i] = true;
  }

  std::size_t tilesPerIpu() const { return tiles_.size() / fullest_.size(); }

  /// Only where something changed.
  void findFullest() {
    for (std::size_t i = 0; i < fullest_.size(); ++i) {
      if (!changed_[i]) continue;
      changed_[i] = false;
      const auto first = tiles_.begin() + static_cast<std::ptrdiff_t>(i * tilesPerIpu());
      const auto most = std::max_element(first, first + static_cast<std::ptrdiff_t>(tilesPerIpu()));
      fullest_[i] = {static_cast<std::uint32_t>(most - tiles_.begin()),
                     static_cast<std::uint64_t>(std::max<std::int64_t>(*most, 0))};
    }
  }

  std::uint64_t temporaryOf(std::int64_t step, std::size_t ipu) const {
    if (step < 0 || !takesPart(draft_.step_ipus[static_cast<std::size_t>(step)], ipu)) return 0;
    return draft_.image.steps[static_cast<std::size_t>(step)].cost.temporary_bytes;
  }

  /// The account while the step at position_ runs: what is live and its own temporaries.
  void stepAt() {
    const auto step = draft_.occurrences[position_++].step;
    findFullest();
    MemoryAccount& memory = draft_.image.memory;
    memory.peak_live_bytes = std::max(
        memory.peak_live_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(live_bytes_, 0)));
    for (std::size_t i = 0; i < fullest_.size(); ++i) {
      auto& most = draft_.image.ipus[i].worst_tile_bytes;
      const std::uint64_t temporary = temporaryOf(step, i);
      if (fullest_[i].bytes + temporary <= most) continue;
      most = fullest_[i].bytes + temporary;
      peaks_[i] = {num_applied_, fullest_[i].tile, temporary};
    }
    if (draft_.image.profile && step >= 0) noteLive(step);
  }

  void noteLive(std::int64_t step) {
    std::uint64_t fullest = 0;
    for (std::size_t i = 0; i < fullest_.size(); ++i)
      fullest = std::max(fullest, fullest_[i].bytes + temporaryOf(step, i));
    const auto live = static_cast<std::uint64_t>(std::max<std::int64_t>(live_bytes_, 0));
    draft_.image.profile->live.push_back({0, live, fullest});
  }

  /// The tensors that are held, and the bytes of each tile at the peak of each IPU.
  void fillProfile(const std::vector<AlwaysThere>& always) {
    ProfileFill fill(draft_);
    for (const Held& held : held_) fill.add(held.variable, held.part, held.always_live);
    for (std::size_t i = 0; i < peaks_.size(); ++i) {
      fill.beginPeak(i, peaks_[i].tile);
      const std::vector<bool> live = liveFlags(peaks_[i]);
      for (std::size_t h = 0; h < held_.size(); ++h)
        if (live[h]) fill.addLive(h);
      fill.addToTiles(peaks_[i].temporary, always[i]);
    }
    fill.finish();
  }

  /// Adds what is always there, and takes the account of the whole from the fullest IPU.
  void finish() {
    MemoryAccount& memory = draft_.image.memory;
    auto& ipus = draft_.image.ipus;
    const auto always = codeOfIpus(draft_);
    for (std::size_t i = 0; i < ipus.size(); ++i) {
      ipus[i].worst_tile = partsOf(peaks_[i]);
      ipus[i].worst_tile.vertex_state = always[i].vertex_state_bytes;
      ipus[i].worst_tile.vertex_code = always[i].vertex_code_bytes;
      ipus[i].worst_tile.control_code = always[i].control_code_bytes;
      ipus[i].worst_tile.exchange_code = always[i].exchange_code_bytes;
      ipus[i].worst_tile_bytes += always[i].vertex_state_bytes + always[i].codeBytes();
    }
    const auto worst = std::ranges::max_element(ipus, {}, &IpuAccount::worst_tile_bytes);
    const auto i = static_cast<std::size_t>(worst - ipus.begin());
    const Peak& peak = peaks_[i];
    const System& system = draft_.graph->system;
    memory.tile_capacity = system.machine.bytes_per_tile;
    const std::uint64_t of_machine =
        std::uint64_t{system.machine.streaming_gigabytes} * 1'000'000'000;
    draft_.image.streaming.capacity =
        of_machine * system.num_ipus / system.machine.ipus_per_machine;
    memory.vertex_state_bytes = always[i].vertex_state_bytes;
    memory.code_bytes = always[i].codeBytes();
    memory.worst_tile = peak.tile;
    memory.worst_tile_bytes = worst->worst_tile_bytes;
    listLargest(peak);
    if (draft_.image.profile) fillProfile(always);
  }

  std::vector<bool> liveFlags(const Peak& peak) const {
    std::vector<bool> is_live(held_.size());
    for (std::size_t i = 0; i < peak.changes; ++i) is_live[changes_[i].held] = changes_[i].starts;
    return is_live;
  }

  std::vector<Held> liveAt(const Peak& peak) const {
    const std::vector<bool> is_live = liveFlags(peak);
    std::vector<Held> live;
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (is_live[i]) live.push_back(held_[i]);
    return live;
  }

  TileParts partsOf(const Peak& peak) const {
    TileParts parts;
    parts.temporaries = peak.temporary;
    for (const Held& held : liveAt(peak)) bytesOfPart(parts, held.part) += bytesOn(held, peak.tile);
    return parts;
  }

  static std::uint64_t& bytesOfPart(TileParts& parts, Part part) {
    switch (part) {
      case Part::kParameters:
        return parts.parameters;
      case Part::kState:
        return parts.state;
      case Part::kAccumulators:
        return parts.accumulators;
      case Part::kStash:
        return parts.stash;
      case Part::kTemporaries:
        break;
    }
    return parts.temporaries;
  }

  void listLargest(const Peak& peak) {
    MemoryAccount& memory = draft_.image.memory;
    std::map<std::pair<std::string, std::string>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < draft_.image.debug.size(); ++i)
      known.emplace(std::make_pair(draft_.image.debug[i].name, draft_.image.debug[i].source), i);
    for (const Held& held : liveAt(peak))
      memory.largest.push_back({held.variable, bytesOf(held), bytesOn(held, peak.tile)});
    std::stable_sort(memory.largest.begin(), memory.largest.end(),
                     [](const TensorAccount& a, const TensorAccount& b) {
                       return a.worst_tile_bytes > b.worst_tile_bytes;
                     });
    if (memory.largest.size() > kLargestListed) memory.largest.resize(kLargestListed);
    for (auto& tensor : memory.largest) {
      const auto& debug = draft_.graph->variables[tensor.debug].debug;
      const auto key = std::make_pair(debug.getPathName(), debug.source());
      const auto [found, fresh] = known.emplace(key, draft_.image.debug.size());
      if (fresh) draft_.image.debug.push_back({key.first, key.second});
      tensor.debug = found->second;
    }
  }

  struct Tile {
    std::uint32_t tile = 0;
    std::uint64_t bytes = 0;
  };

  Draft& draft_;
  std::vector<std::int64_t> tiles_;
  std::vector<Tile> fullest_;  ///< now, by IPU
  std::vector<Peak> peaks_;    ///< by IPU
  std::vector<Held> held_;
  std::vector<Change> changes_;
  std::size_t num_applied_ = 0;
  std::int64_t live_bytes_ = 0;
  std::uint64_t position_ = 0;
  std::vector<bool> changed_;  ///< since findFullest, by IPU
  std::unordered_map<const TileMap*, std::size_t> first_tiles_;
};

}  // namespace

void findResidents(Draft& draft) {
  draft.residents.assign(draft.storages.size(), {});
  for (std::size_t s = 0; s < draft.storages.size(); ++s) {
    const Storage& storage = draft.storages[s];
    const auto& live = draft.live[s];
    if (live.empty() && storage.input < 0 && storage.output < 0) continue;
    draft.residents[s] = {{storage.variable, draft.graph->variables[storage.variable].use, live}};
  }
}

void accountMemory(Draft& draft) { TileSweep(draft).run(); }

}  // namespace ipujax::engine::build
