#include <algorithm>
#include <map>
#include <set>

#include "engine/graph/GraphImpl.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"

namespace poputil {
namespace {

using poplar::Interval;
using Tiles = std::set<unsigned>;
using MappingMethod = TensorUseTracker::MappingMethod;

struct Use {
  Interval interval;
  unsigned tile;
};

/// A run of elements that the same tiles use.
struct Shared {
  Interval interval;
  Tiles tiles;
};

/// The uses of a variable's elements as runs in order; unused elements are left out.
std::vector<Shared> runsOf(const std::vector<Use>& uses) {
  std::map<std::size_t, std::vector<std::pair<unsigned, int>>> changes;
  for (const Use& use : uses) {
    changes[use.interval.begin()].emplace_back(use.tile, 1);
    changes[use.interval.end()].emplace_back(use.tile, -1);
  }
  std::vector<Shared> runs;
  std::map<unsigned, int> counts;
  std::size_t begin = 0;
  for (const auto& [at, changed] : changes) {
    Tiles tiles;
    for (const auto& [tile, count] : counts) tiles.insert(tile);
    if (!tiles.empty()) runs.push_back({{begin, at}, std::move(tiles)});
    for (const auto& [tile, by] : changed)
      if ((counts[tile] += by) == 0) counts.erase(tile);
    begin = at;
  }
  return runs;
}

/// Adds unused elements to the nearer of the runs around them.
void extend(std::vector<Shared>& runs, std::size_t elements) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t next = runs[i].interval.begin();
    const std::size_t middle = i == 0 ? 0 : end + (next - end) / 2;
    if (i > 0) runs[i - 1].interval = {runs[i - 1].interval.begin(), middle};
    end = runs[i].interval.end();
    runs[i].interval = {middle, end};
  }
  if (!runs.empty()) runs.back().interval = {runs.back().interval.begin(), elements};
}

/// Gives a grain that several runs share the tiles of all of them.
std::vector<Shared> joinGrains(const std::vector<Shared>& runs, std::size_t grain) {
  std::map<std::size_t, std::pair<Tiles, unsigned>> shared;  // by grain: all tiles, number of runs
  for (const Shared& run : runs) {
    const std::size_t first = run.interval.begin() / grain;
    const std::size_t last = (run.interval.end() - 1) / grain;
    for (const std::size_t g : {first, last}) {
      auto& [tiles, count] = shared[g];
      tiles.insert(run.tiles.begin(), run.tiles.end());
      ++count;
      if (first == last) break;
    }
  }
  std::vector<Shared> joined;
  for (const Shared& run : runs) {
    for (std::size_t at = run.interval.begin(); at < run.interval.end();) {
      const std::size_t g = at / grain;
      const auto found = shared.find(g);
      const bool is_shared = found != shared.end() && found->second.second > 1;
      const std::size_t last = (run.interval.end() - 1) / grain;
      const std::size_t end = is_shared || g == last ? std::min(run.interval.end(), (g + 1) * grain)
                                                     : std::max((g + 1) * grain, last * grain);
      joined.push_back({{at, end}, is_shared ? found->second.first : run.tiles});
      at = end;
    }
  }
  return joined;
}

bool isWithin(const Tiles& a, const Tiles& b) {
  return a.size() < b.size() && std::includes(b.begin(), b.end(), a.begin(), a.end());
}

/// A run takes the tiles of a neighbour that only some of its tiles use.
std::vector<Shared> joinHalos(const std::vector<Shared>& runs) {
  std::vector<Shared> joined = runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Interval at = runs[i].interval;
    if (i > 0 && runs[i - 1].interval.end() == at.begin() &&
        isWithin(runs[i - 1].tiles, runs[i].tiles))
      joined[i].tiles = runs[i - 1].tiles;
    else if (i + 1 < runs.size() && runs[i + 1].interval.begin() == at.end() &&
             isWithin(runs[i + 1].tiles, runs[i].tiles))
      joined[i].tiles = runs[i + 1].tiles;
  }
  return joined;
}

/// One use for each element: spreads elements used by the same tiles evenly over these tiles.
std::vector<Use> spread(const std::vector<Shared>& runs, unsigned grain, unsigned least) {
  std::map<Tiles, std::vector<Interval>> groups;
  for (const Shared& run : runs) groups[run.tiles].push_back(run.interval);
  std::vector<Use> uses;
  for (auto& [tiles, regions] : groups) {
    mergeAdjacentRegions(regions);
    auto tile = tiles.begin();
    for (const auto& part :
         splitRegions(regions, grain, static_cast<unsigned>(tiles.size()), least)) {
      for (const Interval& region : part) uses.push_back({region, *tile});
      ++tile;
    }
  }
  return uses;
}

}  // namespace

class TensorUseTrackerState {
 public:
  unsigned num_tiles = 0;
  std::map<unsigned, std::vector<Use>> uses;  ///< by variable
};

TensorUseTracker::TensorUseTracker(unsigned numTiles)
    : st_(std::make_unique<TensorUseTrackerState>()) {
  st_->num_tiles = numTiles;
}
TensorUseTracker::TensorUseTracker(const TensorUseTracker& other)
    : st_(std::make_unique<TensorUseTrackerState>(*other.st_)) {}
TensorUseTracker::TensorUseTracker(TensorUseTracker&& other) noexcept = default;
TensorUseTracker& TensorUseTracker::operator=(const TensorUseTracker& other) {
  st_ = std::make_unique<TensorUseTrackerState>(*other.st_);
  return *this;
}
TensorUseTracker& TensorUseTracker::operator=(TensorUseTracker&& other) noexcept = default;
TensorUseTracker::~TensorUseTracker() = default;

void TensorUseTracker::add(const poplar::Graph&, unsigned tile, const poplar::Tensor& t) {
  if (tile >= st_->num_tiles)
    throw poplibs_error("[poputil::TensorUseTracker::add] needs a tile below " +
                        std::to_string(st_->num_tiles) + "; got " + std::to_string(tile) +
                        ". Use a tile of the graph.");
  for (const auto& region : t.getVarRegions())
    st_->uses[region.var.id].push_back({region.interval, tile});
}

void TensorUseTracker::add(TensorUseTracker other) {
  for (const auto& [variable, uses] : other.st_->uses) {
    auto& all = st_->uses[variable];
    all.insert(all.end(), uses.begin(), uses.end());
  }
}

void TensorUseTracker::resolve(const poplar::Graph& graph, unsigned grainSize,
                               unsigned minElementsPerTile, bool extendPartialUsage,
                               MappingMethod mappingMethod) {
  for (auto& [variable, uses] : st_->uses) {
    auto runs = runsOf(uses);
    if (extendPartialUsage) extend(runs, graph.impl().variables[variable].elements);
    if (mappingMethod == MappingMethod::OptimizeHaloRegions) runs = joinHalos(runs);
    if (mappingMethod != MappingMethod::ConstrainMappingToUsedTiles && grainSize > 1)
      runs = joinGrains(runs, grainSize);
    uses = spread(runs, std::max(1u, grainSize), minElementsPerTile);
  }
}

void TensorUseTracker::mapTensorsByUse(poplar::Graph& graph, unsigned grainSize,
                                       unsigned minElementsPerTile, bool extendPartialUsage,
                                       MappingMethod mappingMethod) {
  resolve(graph, grainSize, minElementsPerTile, extendPartialUsage, mappingMethod);
  for (const auto& [id, uses] : st_->uses) {
    const auto& variable = graph.impl().variables[id];
    if (variable.is_constant) continue;
    const poplar::Tensor whole(&graph.impl(), ipujax::engine::share(ipujax::engine::wholeVariable(
                                                  id, variable.type, {variable.elements})));
    for (const Use& use : uses)
      graph.setTileMapping(whole.slice(use.interval.begin(), use.interval.end()), use.tile);
  }
}

bool TensorUseTracker::empty() const { return st_->uses.empty(); }

}  // namespace poputil
