#include "engine/graph/CountedExchanges.hpp"

#include <algorithm>
#include <utility>

#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {
namespace {

/// Maximum of kept numbers, 32 MiB of them; beyond that, all are dropped.
constexpr std::size_t kMost = std::size_t{1} << 22;

/// The first variable of a view.
std::uint32_t firstVariable(const View& view) {
  return view.isStrided() ? view.variable : firstVariable(view.pieces->views.front());
}

}  // namespace

CountedExchanges::CountedExchanges(const System& system)
    : num_ipus_(system.num_ipus), tiles_per_ipu_(system.machine.tiles_per_ipu) {}

CountedExchanges::Turn CountedExchanges::between(Turn from, Turn to) const {
  return {(to.ipus + num_ipus_ - from.ipus) % num_ipus_,
          (to.tiles + tiles_per_ipu_ - from.tiles) % tiles_per_ipu_};
}

std::uint32_t CountedExchanges::turn(std::uint32_t tile, Turn by) const {
  std::uint32_t ipu = tile / tiles_per_ipu_;
  std::uint32_t on_ipu = tile - ipu * tiles_per_ipu_ + by.tiles;
  ipu += by.ipus;
  if (ipu >= num_ipus_) ipu -= num_ipus_;
  if (on_ipu >= tiles_per_ipu_) on_ipu -= tiles_per_ipu_;
  return ipu * tiles_per_ipu_ + on_ipu;
}

const CountedExchanges::Turned& CountedExchanges::turned(const TileMapPtr& map) {
  const auto known = maps_.find(map.get());
  if (known != maps_.end()) return known->second;
  const auto first = std::ranges::find_if(
      map->regions, [](const auto& region) { return region.tile != TileMap::kUnmapped; });
  Turn begin;
  if (first != map->regions.end())
    begin = {first->tile / tiles_per_ipu_, first->tile % tiles_per_ipu_};
  const Turn back = between(begin, {});
  std::vector<std::uint64_t> regions{map->elements};
  regions.reserve(1 + 2 * map->regions.size());
  for (const auto& region : map->regions) {
    regions.push_back(region.begin);
    regions.push_back(region.tile == TileMap::kUnmapped ? region.tile : turn(region.tile, back));
  }
  const auto shape = shapes_.try_emplace(std::move(regions), shapes_.size()).first->second;
  return maps_.emplace(map.get(), Turned{map, shape, begin}).first->second;
}

void CountedExchanges::append(Pair& pair, const View& view) {
  Key& key = pair.key;
  key.push_back(static_cast<std::uint64_t>(view.type));
  key.push_back(view.shape.size());
  key.insert(key.end(), view.shape.begin(), view.shape.end());
  for (const auto stride : view.strides) key.push_back(static_cast<std::uint64_t>(stride));
  key.push_back(static_cast<std::uint64_t>(view.offset));
  key.push_back(view.isStrided() ? 0 : view.pieces->views.size());
  if (!view.isStrided()) {
    for (const View& piece : view.pieces->views) append(pair, piece);
    return;
  }
  const auto seen = std::ranges::find(pair.seen, view.variable);
  key.push_back(static_cast<std::uint64_t>(seen - pair.seen.begin()));
  if (seen == pair.seen.end()) pair.seen.push_back(view.variable);
  const Turned& map = turned(pair.variables[view.variable].map);
  const Turn away = between(pair.begin, map.begin);
  key.insert(key.end(), {map.shape, away.ipus, away.tiles});
}

void CountedExchanges::add(MovedBytes& sum, const std::vector<Variable>& variables,
                           const View& from, const View& to,
                           const std::function<MovedBytes()>& count) {
  const Turn begin = turned(variables[firstVariable(to)].map).begin;
  Pair pair{variables, begin};
  append(pair, from);
  append(pair, to);
  auto found = counted_.find(pair.key);
  if (found == counted_.end()) {
    Counted counted{count(), begin};
    const MovedBytes& bytes = counted.bytes;
    kept_ += bytes.received.size() + bytes.sent.size() + bytes.kept.size();
    if (kept_ > kMost) {
      counted_.clear();
      kept_ = bytes.received.size() + bytes.sent.size() + bytes.kept.size();
    }
    found = counted_.emplace(std::move(pair.key), std::move(counted)).first;
  }
  const Counted& known = found->second;
  const Turn by = between(known.begin, begin);
  const auto add = [&](std::vector<double>& all, const std::vector<double>& more) {
    if (all.empty() && by == Turn()) {
      all = more;
      return;
    }
    for (std::uint32_t tile = 0; tile < more.size(); ++tile) {
      if (more[tile] == 0) continue;
      const std::uint32_t at = turn(tile, by);
      if (all.size() <= at) all.resize(at + 1);
      all[at] += more[tile];
    }
  };
  sum.total += known.bytes.total;
  add(sum.received, known.bytes.received);
  add(sum.sent, known.bytes.sent);
  add(sum.kept, known.bytes.kept);
}

}  // namespace ipujax::engine
