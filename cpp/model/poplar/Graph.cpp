#include "poplar/Graph.hpp"

#include <algorithm>
#include <numeric>

#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/TileRegions.hpp"
#include "poplar/internal/Held.hpp"

namespace poplar {
namespace {

using ipujax::engine::forEachRun;
using ipujax::engine::GraphImpl;
using ipujax::engine::TileMap;
using ipujax::engine::TileMapPtr;
using ipujax::engine::View;

/// The share of the target's IPUs that one of `r` replicas has.
Target shareOf(const Target& target, unsigned r) {
  if (r == 0 || target.getNumIPUs() % r != 0) {
    throw poplar_error("[Graph] needs a target whose IPUs the replicas share evenly; got " +
                       std::to_string(target.getNumIPUs()) + " IPUs for " + std::to_string(r) +
                       " replicas. Use a number of IPUs that is a multiple of that.");
  }
  return target.withTiles(target.getNumIPUs() / r, target.getTilesPerIPU());
}

void needOwn(const GraphImpl& graph, const Tensor& t, const char* where) {
  if (!t.valid() || t.graphImpl() != &graph)
    throw poplar_error(std::string("[") + where + "] needs a tensor of this graph; got " +
                       (t.valid() ? "one of another" : "an empty Tensor") +
                       ". Make it with this graph.");
}

}  // namespace

Graph::Graph() : Graph(Target()) {}
Graph::Graph(const Target& target) : impl_(std::make_shared<GraphImpl>(target)), target_(target) {}
Graph::Graph(const Device& device) : Graph(device.getTarget()) {}
Graph::Graph(std::shared_ptr<GraphImpl> impl, Target target, std::vector<unsigned> tiles)
    : impl_(std::move(impl)), target_(std::move(target)), tiles_(std::move(tiles)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

const Target& Graph::getTarget() const { return target_; }
const std::vector<unsigned>& Graph::physicalTiles() const {
  return tiles_.empty() ? internal::held(impl_, "Graph").all_tiles : tiles_;
}

ipujax::engine::GraphImpl& Graph::impl() const {
  internal::held(impl_, "Graph").parts = {parts_, first_tile_,
                                          part_tiles_};  // for what the caller adds
  return internal::held(impl_, "Graph");
}

void Graph::setTileMapping(const Tensor& t, unsigned tileNum) {
  needOwn(impl(), t, "Graph::setTileMapping");
  const auto& tiles = physicalTiles();
  if (tileNum >= tiles.size()) {
    throw invalid_tile_mapping("[Graph::setTileMapping] needs a tile below " +
                               std::to_string(tiles.size()) + "; got " + std::to_string(tileNum) +
                               ". Use a tile of the graph.");
  }
  forEachRun(*t.view(), [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    auto& map = internal::held(impl_, "Graph").variables[variable].map;
    setRegion(map, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(begin) + length,
              tiles[tileNum]);
  });
}

void Graph::setTileMapping(const Tensor& t, const TileToTensorMapping& mapping) {
  needOwn(impl(), t, "Graph::setTileMapping");
  const auto& tiles = physicalTiles();
  if (mapping.size() > tiles.size()) {
    throw invalid_tile_mapping("[Graph::setTileMapping] needs at most " +
                               std::to_string(tiles.size()) + " tiles; got " +
                               std::to_string(mapping.size()) + ". Map to the tiles of the graph.");
  }
  if (t.view()->isContiguous()) {  // in one pass over the regions
    const auto first = static_cast<std::uint64_t>(t.view()->offset);
    std::vector<TileMap::Region> regions;
    std::size_t covered = 0;
    for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
      for (const auto& interval : mapping[tile]) {
        if (interval.size() == 0) continue;
        regions.push_back({first + interval.begin(), tiles[tile]});
        covered += interval.size();
      }
    }
    std::ranges::sort(regions, {}, &TileMap::Region::begin);
    if (covered == t.numElements()) {
      auto& map = internal::held(impl_, "Graph").variables[t.view()->variable].map;
      map = withRegions(map, std::move(regions), first + covered);
      return;
    }
  }
  const Tensor flat = t.flatten();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
    for (const auto& interval : mapping[tile])
      setTileMapping(flat.slice(interval), static_cast<unsigned>(tile));
  }
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& t, bool* isComplete, bool) const {
  needOwn(internal::held(impl_, "Graph"), t, "Graph::getTileMapping");
  internal::held(impl_, "Graph").finishParts();
  const auto& tiles = physicalTiles();
  std::vector<unsigned> virtual_tile(internal::held(impl_, "Graph").all_tiles.size(), ~0u);
  for (unsigned i = 0; i < tiles.size(); ++i) virtual_tile[tiles[i]] = i;
  TileToTensorMapping mapping(tiles.size());
  bool complete = true;
  std::size_t position = 0;
  forEachRun(*t.view(), [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    const auto add = [&](std::uint32_t tile, std::uint64_t from, std::uint64_t to) {
      const std::size_t start = std::exchange(position, position + (to - from));
      if (tile == TileMap::kUnmapped || virtual_tile[tile] == ~0u) {
        complete = false;
        return;
      }
      auto& intervals = mapping[virtual_tile[tile]];
      if (intervals.empty() || intervals.back().end() != start)
        intervals.emplace_back(start, start);
      intervals.back() = {intervals.back().begin(), position};
    };
    const auto from = static_cast<std::uint64_t>(begin);
    internal::held(impl_, "Graph").variables[variable].map->forEachPart(from, from + length, add);
  });
  if (isComplete) *isComplete = complete;
  return mapping;
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& t, bool requireComplete,
                                                 bool) const {
  bool complete = false;
  auto mapping = getTileMapping(t, &complete);
  if (requireComplete && !complete) {
    throw invalid_tile_mapping(
        "[Graph::getTileMapping] needs every element of '" + t.getDebugStr() +
        "' mapped to a tile of this graph; got an element on none. Call setTileMapping.");
  }
  return mapping;
}

std::vector<std::vector<Interval>> Graph::getSortedContiguousRegions(
    const Tensor& t, ArrayRef<Interval> regions, bool removeAliasedIntervals,
    std::vector<std::size_t>* aliases) const {
  struct Run {
    std::uint64_t memory;
    Interval interval;
  };
  std::vector<Run> runs;
  const View flat = reshapeView(*t.view(), {t.numElements()});
  for (const auto& region : regions) {
    std::size_t position = region.begin();
    forEachRun(
        flat, region.begin(), region.size(),
        [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
          runs.push_back({(std::uint64_t{variable} << 40) + static_cast<std::uint64_t>(begin),
                          {position, position + length}});
          position += length;
        });
  }
  std::ranges::stable_sort(runs, {}, &Run::memory);
  std::vector<std::vector<Interval>> result;
  std::uint64_t end = ~std::uint64_t{0};
  std::vector<std::pair<std::size_t, std::size_t>> removed;  // removed element, kept element
  std::vector<Run> kept;
  for (auto run : runs) {
    if (removeAliasedIntervals && end != ~std::uint64_t{0} && run.memory < end) {
      const std::size_t seen = std::min<std::size_t>(end - run.memory, run.interval.size());
      if (aliases) {
        auto first = std::ranges::upper_bound(kept, run.memory, {}, &Run::memory) - 1;
        for (std::size_t i = 0; i < seen; ++i) {
          while (first->memory + first->interval.size() <= run.memory + i) ++first;
          removed.emplace_back(run.interval.begin() + i,
                               first->interval.begin() + (run.memory + i - first->memory));
        }
      }
      run = {run.memory + seen, {run.interval.begin() + seen, run.interval.end()}};
      if (run.interval.size() == 0) continue;
    }
    if (aliases) kept.push_back(run);
    if (run.memory != end) result.emplace_back();
    auto& group = result.back();
    if (group.empty() || group.back().end() != run.interval.begin()) group.push_back(run.interval);
    group.back() = {group.back().begin(), run.interval.end()};
    end = run.memory + run.interval.size();
  }
  if (aliases) {
    std::ranges::sort(removed);
    for (const auto& [element, kept_element] : removed) aliases->push_back(kept_element);
  }
  return result;
}

Function Graph::addFunction(const program::Program& program) {
  internal::held(impl_, "Graph").functions.push_back(program.node());
  return Function(static_cast<unsigned>(internal::held(impl_, "Graph").functions.size() - 1));
}

Graph Graph::createReplicatedGraph(unsigned replicationFactor) {
  const auto& mine = physicalTiles();
  const unsigned n = replicationFactor;
  const auto size = static_cast<unsigned>(mine.size());
  const unsigned ipus = target_.getNumIPUs();
  const bool is_range = mine.back() - mine.front() + 1 == size;
  if (n == 0 || parts_ > 1 || !is_range || size % n != 0 || (ipus > 1 && ipus % n != 0)) {
    throw graph_replication_error(
        "[Graph::createReplicatedGraph] needs a graph of tiles in a row, or of IPUs, that the "
        "replicas share evenly; got " +
        std::to_string(ipus) + " IPUs with " + std::to_string(size) + " tiles for " +
        std::to_string(n) + " replicas" + (parts_ > 1 ? " of a replicated graph" : "") +
        ". Use a factor that divides them.");
  }
  const unsigned tiles = size / n;
  Graph replicated(impl_,
                   ipus > 1 ? target_.withTiles(ipus / n, target_.getTilesPerIPU())
                            : target_.withTiles(1, tiles),
                   {mine.begin(), mine.begin() + tiles});
  replicated.parts_ = n;
  replicated.first_tile_ = mine.front();
  replicated.part_tiles_ = tiles;
  return replicated;
}

Tensor Graph::getNonReplicatedTensor(const Tensor& t) const {
  return {impl_.get(), impl().allParts(t.view())};
}

Graph Graph::virtualGraph(const Target& target, std::vector<unsigned> tiles) const {
  Graph made(impl_, target, std::move(tiles));
  made.parts_ = parts_;
  made.first_tile_ = first_tile_;
  made.part_tiles_ = part_tiles_;
  return made;
}

Graph Graph::createVirtualGraph(unsigned numTilesPerIPU) {
  const unsigned per_ipu = target_.getTilesPerIPU();
  if (numTilesPerIPU == 0 || numTilesPerIPU > per_ipu)
    throw poplar_error("[Graph::createVirtualGraph] needs 1 to " + std::to_string(per_ipu) +
                       " tiles per IPU; got " + std::to_string(numTilesPerIPU) +
                       ". Use a number in that range.");
  std::vector<unsigned> tiles(numTilesPerIPU);
  std::iota(tiles.begin(), tiles.end(), 0u);
  return createVirtualGraph(tiles);
}

Graph Graph::createVirtualGraph(unsigned lowerTile, unsigned upperTile) {
  const auto& mine = physicalTiles();
  if (lowerTile >= upperTile || upperTile > mine.size())
    throw poplar_error("[Graph::createVirtualGraph] needs lower < upper <= " +
                       std::to_string(mine.size()) + "; got " + std::to_string(lowerTile) + ", " +
                       std::to_string(upperTile) + ". Use tiles of this graph.");
  return virtualGraph(target_.withTiles(1, upperTile - lowerTile),
                      {mine.begin() + lowerTile, mine.begin() + upperTile});
}

Graph Graph::createVirtualGraph(const std::vector<unsigned>& perIPUTiles) {
  const auto& mine = physicalTiles();
  const unsigned per_ipu = target_.getTilesPerIPU();
  std::vector<unsigned> tiles;
  for (unsigned ipu = 0; ipu < target_.getNumIPUs(); ++ipu) {
    for (unsigned tile : perIPUTiles) {
      if (tile >= per_ipu)
        throw poplar_error("[Graph::createVirtualGraph] needs tiles below " +
                           std::to_string(per_ipu) + "; got " + std::to_string(tile) +
                           ". Use tiles of one IPU.");
      tiles.push_back(mine[ipu * per_ipu + tile]);
    }
  }
  return virtualGraph(
      target_.withTiles(target_.getNumIPUs(), static_cast<unsigned>(perIPUTiles.size())),
      std::move(tiles));
}

Graph::operator ipujax::engine::GraphScope() const& { return {impl(), target_}; }

Graph Graph::of(GraphImpl& impl) { return Graph(impl.shared_from_this(), Target(impl.system), {}); }

Graph Graph::getTopLevelGraph() const { return of(internal::held(impl_, "Graph")); }

Graph::Graph(const Target& target, replication_factor r) : Graph(shareOf(target, r)) {
  internal::held(impl_, "Graph").replication_factor = r;
}
Graph::Graph(const Device& device, replication_factor r) : Graph(device.getTarget(), r) {}
Graph::Graph(const Target& target, unsigned numIPUs, replication_factor r)
    : Graph(target.createVirtualTarget(numIPUs ? numIPUs : target.getNumIPUs(),
                                       target.getTilesPerIPU()),
            r) {}
Graph::Graph(const Device& device, unsigned numIPUs, replication_factor r)
    : Graph(device.getTarget(), numIPUs, r) {}

unsigned Graph::getReplicationFactor() const {
  return internal::held(impl_, "Graph").replication_factor * parts_;
}

Tensor Graph::addReplicationIndexConstant(const DebugContext& debugContext) {
  Tensor index = addVariable(UNSIGNED_INT, {}, debugContext);
  getTopLevelGraph().setTileMapping(index, 0);
  internal::held(impl_, "Graph").replication_indices.push_back(index);
  return index;
}

unsigned Graph::convertVirtualTileToPhysicalTile(unsigned virtualTileId) const {
  const auto& tiles = physicalTiles();
  if (virtualTileId < tiles.size()) return tiles[virtualTileId];
  throw poplar_error("[Graph::convertVirtualTileToPhysicalTile] needs a tile below " +
                     std::to_string(tiles.size()) + "; got " + std::to_string(virtualTileId) +
                     ". Use a tile of this graph.");
}

unsigned Graph::convertPhysicalTileToVirtualTile(unsigned physicalTileId) const {
  const auto& tiles = physicalTiles();
  const auto found = std::ranges::find(tiles, physicalTileId);
  if (found != tiles.end()) return static_cast<unsigned>(found - tiles.begin());
  throw poplar_error("[Graph::convertPhysicalTileToVirtualTile] needs a tile of this graph; got " +
                     std::to_string(physicalTileId) + ". Ask the graph that has it.");
}

unsigned Graph::convertPhysicalTileToVirtualTile(unsigned ipuId, unsigned physicalTileId) const {
  return convertPhysicalTileToVirtualTile(
      ipuId * internal::held(impl_, "Graph").system.machine.tiles_per_ipu + physicalTileId);
}

Tensor Graph::findUnbroadcastTensor(const Tensor& t) const {
  Tensor source = t;
  for (unsigned i = 0; i < t.rank(); ++i) {
    const bool repeats = t.view()->isStrided() && t.view()->strides[i] == 0 && t.dim(i) > 1;
    if (repeats) source = source.slice(0, 1, i);
  }
  return source;
}

void Graph::reorderToSimplify(Tensor* t, ArrayRef<Tensor*> ts, bool) const {
  const TensorRearranger rearranger = getSimplifyingRearranger(*t);
  *t = rearranger.rearrange(t->flatten());
  for (Tensor* other : ts) *other = rearranger.rearrange(other->flatten());
}

TensorRearranger Graph::getSimplifyingRearranger(const Tensor& t) const {
  std::vector<Interval> order;
  for (const auto& group : getSortedContiguousRegions(t, {Interval(0, t.numElements())}))
    order.insert(order.end(), group.begin(), group.end());
  return TensorRearranger(std::move(order));
}

Tensor Graph::addLinearlyMappedVariable(const Type& type, ArrayRef<std::size_t> shape,
                                        unsigned minElementsPerTile, unsigned grainSize,
                                        const DebugContext& debugContext) {
  const Tensor t = addVariable(type, shape, debugContext);
  const std::size_t grain = std::max(1U, grainSize);
  const std::size_t grains = (t.numElements() + grain - 1) / grain;
  const std::size_t tiles = physicalTiles().size();
  const std::size_t each = std::max((grains + tiles - 1) / tiles * grain,
                                    (minElementsPerTile + grain - 1) / grain * grain);
  TileToTensorMapping mapping(tiles);
  for (std::size_t tile = 0, at = 0; at < t.numElements(); ++tile, at += each)
    mapping[tile].emplace_back(at, std::min(at + each, t.numElements()));
  setTileMapping(t, mapping);
  return t;
}

bool Graph::isConstant(VariableRef var) const {
  if (var.id < impl().variables.size()) return impl().variables[var.id].is_constant;
  throw poplar_error(
      "[Graph::isConstant] needs a variable of this graph; got another. Use one of "
      "getVarRegions.");
}

Tensor Graph::getVariable(VariableRef var) const {
  isConstant(var);  // throws if there is no such variable
  const auto& variable = internal::held(impl_, "Graph").variables[var.id];
  return {impl_.get(),
          std::make_shared<const View>(wholeVariable(var.id, variable.type, {variable.elements}))};
}

FunctionBuffer Graph::addFunctionBuffer(Function function, FunctionBufferMappingType) {
  return {function, function.getId()};
}

template <std::size_t... sizes>
void Layout<sizes...>::tag() {}
template struct Layout<sizeof(Graph), sizeof(Tensor), sizeof(Type), sizeof(DebugContext),
                       sizeof(program::Program), sizeof(OptionFlags), sizeof(std::string)>;

}  // namespace poplar
