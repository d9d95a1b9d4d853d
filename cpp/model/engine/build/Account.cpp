#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "engine/build/Held.hpp"
#include "engine/build/ProfileFill.hpp"
#include "engine/build/TileAllocation.hpp"
#include "engine/build/TileClasses.hpp"

namespace ipujax::engine::build {
namespace {

constexpr std::size_t kLargestListed = 10;
/// The classes of an IPU with most live bytes that always get addresses.
constexpr std::size_t kCandidates = 2;
/// More classes get addresses until they have this many blocks in total. Those with far fewer live
/// bytes are left out: tiles that hold about the same have similar gaps between variables
/// (tests/compiler/test_tile_memory.py), except for gaps that memory elements leave.
constexpr std::size_t kBlocks = 512;
constexpr std::uint64_t kSlackElements = 2;

struct Change {
  std::uint64_t moment;
  bool starts;
  std::uint32_t held;
};

/// When the tiles of a class are fullest.
struct Peak {
  std::uint64_t live_bytes = 0;  ///< the step's temporaries included
  std::size_t changes = 0;       ///< number of changes before it
  std::int64_t step = -1;        ///< running at that time
  std::uint64_t allocated_bytes = 0;
};

/// Sweeps over the program in time, tracks the live bytes of each class of tiles, and allocates
/// addresses on the tiles that may be the fullest.
class TileSweep {
 public:
  explicit TileSweep(Draft& draft)
      : draft_(draft),
        num_ipus_(draft.graph->system.num_ipus),
        history_(historyOf(draft)),
        held_(history_.held),
        classes_(mapsOf(draft, held_), draft.graph->system.numTiles(), num_ipus_,
                 !draft.image.mechanisms.has(Mechanism::kTiles)),
        always_(alwaysThere(draft)),
        live_(classes_.size()),
        peaks_(classes_.size()),
        fullest_now_(num_ipus_),
        has_changed_(num_ipus_) {
    draft.image.ipus.resize(num_ipus_);
  }

  void run() {
    findUses();
    collectChanges();
    for (std::uint64_t moment = 0; moment < history_.steps.size(); ++moment) {
      for (; num_applied_ < changes_.size() && changes_[num_applied_].moment <= moment;
           ++num_applied_)
        apply(held_[changes_[num_applied_].held], changes_[num_applied_].starts);
      stepAt(history_.steps[moment]);
    }
    TileAllocation allocation(draft_, held_, times_);
    for (std::size_t ipu = 0; ipu < num_ipus_; ++ipu) findFullest(ipu, allocation);
    finish();
  }

 private:
  static const Variable& variableOf(const Draft& draft, const Held& held) {
    return draft.graph->variables[held.variable];
  }
  const Variable& variableOf(const Held& held) const { return variableOf(draft_, held); }

  static const TileMap* mapOf(const Draft& draft, const OperandDesc& operand) {
    const Variable& variable = draft.graph->variables[draft.storages[operand.buffer].variable];
    return variable.is_remote ? nullptr : variable.map.get();
  }

  static std::vector<const TileMap*> mapsOf(const Draft& draft, const std::vector<Held>& held) {
    std::vector<const TileMap*> maps;
    for (const Held& each : held) maps.push_back(variableOf(draft, each).map.get());
    for (const StepDesc& step : draft.image.steps) {
      if (step.cost.temporary_bytes == 0) continue;
      for (const OperandDesc& operand : step.operands)
        if (const TileMap* map = mapOf(draft, operand)) maps.push_back(map);
    }
    return maps;
  }

  std::uint64_t bytesOf(const Held& held) const {
    return variableOf(held).elements * sizeOf(variableOf(held).type);
  }

  std::uint64_t bytesOn(const Held& held, std::uint32_t tile) const {
    const auto& counts = variableOf(held).map->per_tile;
    return tile < counts.size() ? counts[tile] * sizeOf(variableOf(held).type) : 0;
  }

  /// A step's temporaries are on the tiles that have some of its operands; if an IPU has none of
  /// these, on all of its tiles.
  void findUses() {
    uses_.resize(draft_.image.steps.size());
    times_.resize(draft_.image.steps.size());
    for (std::uint64_t moment = 0; moment < history_.steps.size(); ++moment)
      if (const auto step = history_.steps[moment]; step >= 0)
        times_[static_cast<std::size_t>(step)].push_back({moment, moment});
    for (std::size_t s = 0; s < uses_.size(); ++s) {
      const StepDesc& step = draft_.image.steps[s];
      if (step.cost.temporary_bytes == 0 || times_[s].empty()) continue;
      std::vector<bool> used(classes_.size());
      for (const OperandDesc& operand : step.operands)
        if (const TileMap* map = mapOf(draft_, operand))
          for (const auto& count : classes_.counts(map)) used[count.tiles] = true;
      for (std::size_t ipu = 0; ipu < num_ipus_; ++ipu) {
        if (!takesPart(draft_.step_ipus[s], ipu)) continue;
        const auto [first, last] = classes_.ofIpu(ipu);
        const bool none = std::find(used.begin() + static_cast<std::ptrdiff_t>(first),
                                    used.begin() + static_cast<std::ptrdiff_t>(last),
                                    true) == used.begin() + static_cast<std::ptrdiff_t>(last);
        for (std::size_t c = first; c < last; ++c)
          if (none || used[c]) uses_[s].push_back(static_cast<std::uint32_t>(c));
      }
    }
  }

  void collectChanges() {
    for (std::uint32_t h = 0; h < held_.size(); ++h) {
      for (const Segment& live : held_[h].live) {
        changes_.push_back({live.begin, true, h});
        changes_.push_back({live.end + 1, false, h});
      }
    }
    std::ranges::stable_sort(changes_, [](const Change& a, const Change& b) {
      return a.moment != b.moment ? a.moment < b.moment : a.starts < b.starts;
    });
  }

  void apply(const Held& held, bool starts) {
    const auto& variable = variableOf(held);
    const std::uint64_t size = sizeOf(variable.type);
    // Unsigned numbers wrap; this is safe, as everything subtracted was added before.
    live_bytes_ += starts ? bytesOf(held) : -bytesOf(held);
    for (const auto& count : classes_.counts(variable.map.get()))
      live_[count.tiles] += starts ? count.elements * size : -(count.elements * size);
    const auto& counts = classes_.counts(variable.map.get());
    if (counts.empty()) return;
    for (std::size_t i = ipuOf(counts.front().tiles); i <= ipuOf(counts.back().tiles); ++i)
      has_changed_[i] = true;
  }

  std::size_t ipuOf(std::size_t tiles) const {
    return classes_.tileOf(tiles) / (draft_.graph->system.numTiles() / num_ipus_);
  }

  void note(std::size_t tiles, std::uint64_t bytes, std::int64_t step) {
    Peak& peak = peaks_[tiles];
    if (bytes > peak.live_bytes) peak = {bytes, num_applied_, step};
  }

  /// Notes the live bytes of IPUs where something changed.
  void noteChanges() {
    for (std::size_t i = 0; i < num_ipus_; ++i) {
      if (!std::exchange(has_changed_[i], 0)) continue;
      const auto [first, last] = classes_.ofIpu(i);
      fullest_now_[i] = 0;
      for (std::size_t c = first; c < last; ++c) {
        note(c, live_[c], -1);
        fullest_now_[i] = std::max(fullest_now_[i], live_[c]);
      }
    }
  }

  /// Accounts for a running step: live variables and its own temporaries.
  void stepAt(std::int64_t step) {
    MemoryAccount& memory = draft_.image.memory;
    memory.peak_live_bytes = std::max(memory.peak_live_bytes, live_bytes_);
    noteChanges();
    std::uint64_t fullest = *std::ranges::max_element(fullest_now_);
    if (step >= 0) {
      const auto s = static_cast<std::size_t>(step);
      const std::uint64_t temporary = draft_.image.steps[s].cost.temporary_bytes;
      for (const std::uint32_t c : uses_[s]) {
        note(c, live_[c] + temporary, step);
        fullest = std::max(fullest, live_[c] + temporary);
      }
    }
    points_.push_back({0, live_bytes_, fullest});
  }

  /// Puts code, vertex state and stacks at the lowest addresses, but does not count them.
  std::uint64_t allocatedOn(std::size_t tiles, std::size_t ipu, TileAllocation& allocation) const {
    const std::uint64_t taken = always_[ipu].total();
    const auto has_temporaries = [&](std::size_t step) {
      return std::ranges::binary_search(uses_[step], tiles);
    };
    return allocation.bytesOf(classes_.tileOf(tiles), taken, has_temporaries) - taken;
  }

  /// Whether a class and all after it are assumed to need less than the fullest.
  bool isLess(const Peak& peak, const Peak& fullest, std::size_t num_blocks) const {
    if (!draft_.image.mechanisms.has(Mechanism::kTiles)) return false;
    const std::uint64_t gaps = fullest.allocated_bytes - fullest.live_bytes;
    const std::uint64_t slack =
        gaps + 2 * kSlackElements * draft_.graph->system.machine.memory_element_bytes;
    return num_blocks >= kBlocks || peak.live_bytes + slack <= fullest.allocated_bytes;
  }

  /// Finds the class of an IPU that needs most bytes. Tries classes with most live bytes first.
  void findFullest(std::size_t ipu, TileAllocation& allocation) {
    const auto [first, last] = classes_.ofIpu(ipu);
    std::vector<std::size_t> order;
    for (std::size_t c = first; c < last; ++c) order.push_back(c);
    std::ranges::stable_sort(order, std::greater{}, [&](auto c) { return peaks_[c].live_bytes; });
    std::size_t fullest = order.front();
    std::size_t num_blocks = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t c = order[i];
      if (i >= kCandidates && isLess(peaks_[c], peaks_[fullest], num_blocks)) break;
      peaks_[c].allocated_bytes = allocatedOn(c, ipu, allocation);
      num_blocks += allocation.numBlocks();
      if (peaks_[c].allocated_bytes > peaks_[fullest].allocated_bytes) fullest = c;
    }
    fullest_.push_back(fullest);
  }

  /// Bytes of the fullest tile of an IPU at its peak, by their use.
  TileParts partsOf(std::size_t ipu) const {
    const Peak& peak = peaks_[fullest_[ipu]];
    TileParts parts = always_[ipu];
    if (peak.step >= 0)
      parts += temporariesOf(draft_.image.steps[static_cast<std::size_t>(peak.step)].cost);
    for (const std::size_t h : liveAt(peak))
      parts[held_[h].part] += bytesOn(held_[h], classes_.tileOf(fullest_[ipu]));
    parts[TilePart::kPadding] = peak.allocated_bytes - peak.live_bytes;
    return parts;
  }

  /// Takes the totals from the fullest IPU.
  void finish() {
    MemoryAccount& memory = draft_.image.memory;
    auto& ipus = draft_.image.ipus;
    for (std::size_t i = 0; i < num_ipus_; ++i) {
      ipus[i].worst_tile = partsOf(i);
      ipus[i].worst_tile_bytes = ipus[i].worst_tile.total();
    }
    const auto worst = std::ranges::max_element(ipus, {}, &IpuAccount::worst_tile_bytes);
    const auto i = static_cast<std::size_t>(worst - ipus.begin());
    const System& system = draft_.graph->system;
    memory.tile_capacity = system.machine.bytes_per_tile;
    const std::uint64_t of_machine =
        std::uint64_t{system.machine.streaming_gigabytes} * 1'000'000'000;
    draft_.image.streaming.capacity =
        of_machine * system.num_ipus / system.machine.ipus_per_machine;
    memory.vertex_state_bytes = always_[i][TilePart::kVertexState];
    for (const TileParts& parts : always_)
      memory.code_bytes = std::max(memory.code_bytes, parts.code());
    memory.code_capacity = system.machine.executable_bytes_per_tile;
    memory.worst_tile = classes_.tileOf(fullest_[i]);
    memory.worst_tile_bytes = worst->worst_tile_bytes;
    listLargest(fullest_[i]);
    if (draft_.image.profile) fillProfile();
  }

  /// Fills in the held tensors, and the bytes of each tile at the peak of its IPU.
  void fillProfile() {
    for (std::size_t p = 0; p < draft_.occurrences.size(); ++p)
      if (draft_.occurrences[p].step >= 0)
        draft_.image.profile->live.push_back(points_[history_.moment_of[p]]);
    ProfileFill fill(draft_);
    for (const Held& held : held_) fill.add(held.variable, held.part, held.always_live);
    for (std::size_t i = 0; i < num_ipus_; ++i) {
      const Peak& peak = peaks_[fullest_[i]];
      fill.beginPeak(i, classes_.tileOf(fullest_[i]));
      for (const std::size_t h : liveAt(peak)) fill.addLive(h);
      std::vector<TileParts> others(classes_.size(), always_[i]);
      if (peak.step >= 0) {
        const auto s = static_cast<std::size_t>(peak.step);
        const TileParts temporaries = temporariesOf(draft_.image.steps[s].cost);
        for (const std::uint32_t c : uses_[s]) others[c] += temporaries;
      }
      others[fullest_[i]][TilePart::kPadding] = peak.allocated_bytes - peak.live_bytes;
      fill.addToTiles([&](std::size_t tile) { return others[classes_.classOf(tile)]; });
    }
    fill.finish();
  }

  /// Indices in held_ of the variables that are live at a peak.
  std::vector<std::size_t> liveAt(const Peak& peak) const {
    std::vector<bool> is_live(held_.size());
    for (std::size_t i = 0; i < peak.changes; ++i) is_live[changes_[i].held] = changes_[i].starts;
    std::vector<std::size_t> live;
    for (std::size_t h = 0; h < held_.size(); ++h)
      if (is_live[h]) live.push_back(h);
    return live;
  }

  void listLargest(std::size_t tiles) {
    const std::uint32_t tile = classes_.tileOf(tiles);
    MemoryAccount& memory = draft_.image.memory;
    std::map<std::pair<std::string, std::string>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < draft_.image.debug.size(); ++i)
      known.emplace(std::make_pair(draft_.image.debug[i].name, draft_.image.debug[i].source), i);
    std::vector<TensorAccount> all;
    for (const std::size_t h : liveAt(peaks_[tiles]))
      all.push_back({held_[h].variable, 1, bytesOf(held_[h]), bytesOn(held_[h], tile)});
    std::stable_sort(all.begin(), all.end(), [](const TensorAccount& a, const TensorAccount& b) {
      return a.worst_tile_bytes > b.worst_tile_bytes;
    });
    for (auto& tensor : all) {
      const bool is_full = memory.largest.size() == kLargestListed;
      if (is_full && tensor.worst_tile_bytes < memory.largest.back().worst_tile_bytes) break;
      const auto& debug = draft_.graph->variables[tensor.debug].debug;
      const auto key = std::make_pair(debug.getPathName(), debug.source());
      if (is_full && !known.contains(key)) continue;
      const auto [found, fresh] = known.emplace(key, draft_.image.debug.size());
      if (fresh) draft_.image.debug.push_back({key.first, key.second});
      tensor.debug = found->second;
      const auto same = std::find_if(
          memory.largest.begin(), memory.largest.end(), [&](const TensorAccount& listed) {
            return listed.debug == tensor.debug && listed.bytes == tensor.bytes &&
                   listed.worst_tile_bytes == tensor.worst_tile_bytes;
          });
      if (same != memory.largest.end())
        ++same->count;
      else if (!is_full)
        memory.largest.push_back(tensor);
    }
  }

  Draft& draft_;
  std::size_t num_ipus_;
  History history_;
  const std::vector<Held>& held_;
  TileClasses classes_;
  std::vector<TileParts> always_;                 ///< besides variables, by IPU
  std::vector<std::vector<Segment>> times_;       ///< moments of a step
  std::vector<std::uint64_t> live_;               ///< bytes of variables, by class
  std::vector<Peak> peaks_;                       ///< by class
  std::vector<std::vector<std::uint32_t>> uses_;  ///< classes that have a step's temporaries
  std::vector<LivePoint> points_;                 ///< by moment
  std::vector<std::size_t> fullest_;              ///< a class, by IPU
  std::vector<Change> changes_;
  std::size_t num_applied_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::vector<std::uint64_t> fullest_now_;  ///< by IPU, without temporaries
  std::vector<char> has_changed_;           ///< since noteChanges, by IPU
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
