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

/// Sweeps the program in time and keeps the bytes live on each tile.
class TileSweep {
 public:
  explicit TileSweep(Draft& draft)
      : draft_(draft),
        tiles_(draft.graph->system.numTiles(), 0),
        worst_of_ipu_(draft.graph->system.num_ipus) {
    draft.image.ipus.resize(worst_of_ipu_.size());
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
    const auto per_ipu = static_cast<std::ptrdiff_t>(tiles_.size() / worst_of_ipu_.size());
    auto worst = tiles_.begin();
    for (std::size_t i = 0; i < worst_of_ipu_.size(); ++i) {
      const auto first = tiles_.begin() + static_cast<std::ptrdiff_t>(i) * per_ipu;
      const auto most = std::max_element(first, first + per_ipu);
      worst_of_ipu_[i] = static_cast<std::uint64_t>(std::max<std::int64_t>(*most, 0));
      if (*most > *worst) worst = most;
    }
    worst_tile_ = static_cast<std::uint32_t>(worst - tiles_.begin());
    worst_bytes_ = static_cast<std::uint64_t>(std::max<std::int64_t>(*worst, 0));
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
    for (std::size_t i = 0; i < worst_of_ipu_.size(); ++i) {
      auto& most = draft_.image.ipus[i].worst_tile_bytes;
      most = std::max(most, worst_of_ipu_[i] + temporary);
    }
    if (worst_bytes_ + temporary > memory.worst_tile_bytes) {
      memory.worst_tile_bytes = worst_bytes_ + temporary;
      memory.worst_tile = worst_tile_;
      at_peak_ = live_;
    }
  }

  void finish() {
    Image& image = draft_.image;
    MemoryAccount& memory = image.memory;
    std::map<std::string, std::uint64_t> code;
    for (std::size_t i = 0; i < image.steps.size(); ++i) {
      if (draft_.step_removed[i]) continue;
      const StepDesc& step = image.steps[i];
      memory.vertex_state_bytes += step.cost.vertex_state_bytes;
      auto& bytes = code[step.kernel];
      bytes = std::max(bytes, step.cost.code_bytes);
    }
    for (const auto& [kernel, bytes] : code) memory.code_bytes += bytes;
    memory.tile_capacity = draft_.graph->system.machine.bytes_per_tile;
    memory.worst_tile_bytes += memory.vertex_state_bytes + memory.code_bytes;
    for (auto& ipu : image.ipus)
      ipu.worst_tile_bytes += memory.vertex_state_bytes + memory.code_bytes;
    listLargest();
  }

  void listLargest() {
    MemoryAccount& memory = draft_.image.memory;
    std::map<std::pair<std::string, std::string>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < draft_.image.debug.size(); ++i)
      known.emplace(std::make_pair(draft_.image.debug[i].name, draft_.image.debug[i].source), i);
    for (const auto s : at_peak_) {
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
  std::vector<std::uint64_t> worst_of_ipu_;
  std::vector<Change> changes_;
  std::vector<std::uint32_t> live_;
  std::vector<std::uint32_t> at_peak_;
  std::int64_t live_bytes_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t worst_bytes_ = 0;
  std::uint32_t worst_tile_ = 0;
  bool changed_ = true;
};

}  // namespace

void accountMemory(Draft& draft) { TileSweep(draft).run(); }

}  // namespace ipujax::engine::build
