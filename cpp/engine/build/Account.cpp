#include <algorithm>
#include <map>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {
namespace {

constexpr std::size_t kLargestListed = 10;

struct Change {
  std::uint64_t time;
  bool starts;
  std::uint32_t storage;
};

/// The fullest tile of an IPU.
struct Worst {
  std::uint64_t bytes = 0;
  std::uint32_t tile = 0;
};

/// It when it is fullest, and the storages that are live then.
struct Peak {
  std::uint32_t tile = 0;
  std::vector<std::uint32_t> live;
};

/// Sweeps the program in time and keeps the bytes live on each tile.
class TileSweep {
 public:
  explicit TileSweep(Draft& draft)
      : draft_(draft),
        tiles_(draft.graph->system.numTiles(), 0),
        worst_(draft.graph->system.num_ipus),
        peaks_(worst_.size()) {
    draft.image.ipus.resize(worst_.size());
  }

  void run() {
    collectChanges();
    for (const auto& change : changes_) {
      while (position_ < draft_.occurrences.size() && 2 * position_ + 1 < change.time) stepAt();
      apply(change.storage, change.starts);
    }
    while (position_ < draft_.occurrences.size()) stepAt();
    finish();
  }

 private:
  const Variable& variableOf(std::uint32_t s) const {
    return draft_.graph->variables[draft_.storages[s].variable];
  }

  bool alwaysLive(std::uint32_t s) const {
    const Storage& storage = draft_.storages[s];
    return storage.constant || storage.persistent || storage.input >= 0 || storage.output >= 0;
  }

  void collectChanges() {
    MemoryAccount& memory = draft_.image.memory;
    const std::uint64_t end = 2 * std::uint64_t{draft_.root.end} + 1;
    for (std::uint32_t s = 0; s < draft_.storages.size(); ++s) {
      if (draft_.find(s) != s) continue;
      if (alwaysLive(s)) {
        if (draft_.storages[s].constant && draft_.accesses[s].empty()) continue;
        memory.always_live_bytes += draft_.storages[s].bytes;
        changes_.push_back({0, true, s});
      } else if (!draft_.live[s].empty()) {
        changes_.push_back({draft_.live[s].front().begin & ~std::uint64_t{1}, true, s});
        changes_.push_back({std::min(draft_.live[s].back().end, end) + 1, false, s});
      }
    }
    std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.starts < b.starts;
    });
  }

  void apply(std::uint32_t s, bool starts) {
    const auto& variable = variableOf(s);
    const auto bytes = static_cast<std::int64_t>(sizeOf(variable.type)) * (starts ? 1 : -1);
    const auto& counts = variable.map->per_tile;
    for (std::size_t t = 0; t < counts.size(); ++t)
      tiles_[t] += bytes * static_cast<std::int64_t>(counts[t]);
    live_bytes_ += (starts ? 1 : -1) * static_cast<std::int64_t>(draft_.storages[s].bytes);
    if (starts) {
      live_.push_back(s);
    } else {
      std::erase(live_, s);
    }
    changed_ = true;
  }

  void findWorst() {
    const auto per_ipu = static_cast<std::ptrdiff_t>(tiles_.size() / worst_.size());
    for (std::size_t i = 0; i < worst_.size(); ++i) {
      const auto first = tiles_.begin() + static_cast<std::ptrdiff_t>(i) * per_ipu;
      const auto most = std::max_element(first, first + per_ipu);
      worst_[i] = {static_cast<std::uint64_t>(std::max<std::int64_t>(*most, 0)),
                   static_cast<std::uint32_t>(most - tiles_.begin())};
    }
  }

  /// The account while the step at position_ runs: what is live and its own temporaries.
  void stepAt() {
    const auto step = draft_.occurrences[position_++].step;
    const std::uint64_t temporary =
        step < 0 ? 0 : draft_.image.steps[static_cast<std::size_t>(step)].cost.temporary_bytes;
    if (changed_) {
      findWorst();
      changed_ = false;
    }
    MemoryAccount& memory = draft_.image.memory;
    memory.peak_live_bytes = std::max(
        memory.peak_live_bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(live_bytes_, 0)));
    for (std::size_t i = 0; i < worst_.size(); ++i) {
      auto& most = draft_.image.ipus[i].worst_tile_bytes;
      if (worst_[i].bytes + temporary <= most) continue;
      most = worst_[i].bytes + temporary;
      peaks_[i] = {worst_[i].tile, live_};
    }
  }

  /// Adds what is always there, and takes the account of the whole from the fullest IPU.
  void finish() {
    MemoryAccount& memory = draft_.image.memory;
    auto& ipus = draft_.image.ipus;
    const auto always = codeOfIpus(draft_);
    for (std::size_t i = 0; i < ipus.size(); ++i)
      ipus[i].worst_tile_bytes += always[i].vertex_state_bytes + always[i].code_bytes;
    const auto fullest = std::ranges::max_element(ipus, {}, &IpuAccount::worst_tile_bytes);
    const auto i = static_cast<std::size_t>(fullest - ipus.begin());
    memory.tile_capacity = draft_.graph->system.machine.bytes_per_tile;
    memory.vertex_state_bytes = always[i].vertex_state_bytes;
    memory.code_bytes = always[i].code_bytes;
    memory.worst_tile_bytes = ipus[i].worst_tile_bytes;
    memory.worst_tile = peaks_[i].tile;
    listLargest(peaks_[i].live);
  }

  void listLargest(const std::vector<std::uint32_t>& at_peak) {
    MemoryAccount& memory = draft_.image.memory;
    std::map<std::pair<std::string, std::string>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < draft_.image.debug.size(); ++i)
      known.emplace(std::make_pair(draft_.image.debug[i].name, draft_.image.debug[i].source), i);
    for (const auto s : at_peak) {
      const auto& variable = variableOf(s);
      const auto& counts = variable.map->per_tile;
      const std::uint64_t on_tile =
          memory.worst_tile < counts.size() ? counts[memory.worst_tile] : 0;
      memory.largest.push_back({s, draft_.storages[s].bytes, on_tile * sizeOf(variable.type)});
    }
    std::stable_sort(memory.largest.begin(), memory.largest.end(),
                     [](const TensorAccount& a, const TensorAccount& b) {
                       return a.worst_tile_bytes > b.worst_tile_bytes;
                     });
    if (memory.largest.size() > kLargestListed) memory.largest.resize(kLargestListed);
    for (auto& tensor : memory.largest) {
      const auto& debug = variableOf(tensor.debug).debug;
      const auto key = std::make_pair(debug.getPathName(), debug.source());
      const auto [found, fresh] = known.emplace(key, draft_.image.debug.size());
      if (fresh) draft_.image.debug.push_back({key.first, key.second});
      tensor.debug = found->second;
    }
  }

  Draft& draft_;
  std::vector<std::int64_t> tiles_;
  std::vector<Worst> worst_;  ///< by IPU, of what is live now
  std::vector<Peak> peaks_;   ///< by IPU
  std::vector<Change> changes_;
  std::vector<std::uint32_t> live_;
  std::int64_t live_bytes_ = 0;
  std::uint64_t position_ = 0;
  bool changed_ = true;
};

}  // namespace

void accountMemory(Draft& draft) { TileSweep(draft).run(); }

}  // namespace ipujax::engine::build
