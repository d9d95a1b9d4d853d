#include "engine/graph/TileRegions.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace ipujax::engine {
namespace {

/// Updates the counts of a mapping for elements [begin, end) that move to another tile.
void moveCounts(TileMap& map, std::uint64_t begin, std::uint64_t end, std::uint32_t tile) {
  auto& counts = map.per_tile;
  map.forEachPart(begin, end, [&](std::uint32_t on, std::uint64_t from, std::uint64_t to) {
    if (on != TileMap::kUnmapped) counts[on] -= static_cast<std::uint32_t>(to - from);
  });
  if (counts.size() <= tile) counts.resize(tile + 1);
  counts[tile] += static_cast<std::uint32_t>(end - begin);
  while (counts.back() == 0) counts.pop_back();
  map.tiles_used = map.max_per_tile = 0;
  std::uint64_t mapped = 0;
  for (const std::uint64_t count : counts) {
    map.tiles_used += count != 0;
    map.max_per_tile = std::max(map.max_per_tile, count);
    mapped += count;
  }
  map.complete = mapped == map.elements;
}

}  // namespace

void setRegion(TileMapPtr& map, std::uint64_t begin, std::uint64_t end, std::uint32_t tile) {
  const bool is_whole = begin == 0 && end == map->elements;
  if (begin == end || is_whole || tile == TileMap::kUnmapped || map.use_count() != 1) {
    map = withRegion(map, begin, end, tile);
    return;
  }
  auto& own = const_cast<TileMap&>(*map);  // tileMapOf made it non-const, and nothing else uses it
  moveCounts(own, begin, end, tile);
  auto& regions = own.regions;
  const std::size_t next = own.behind(end);
  const std::uint32_t after = next == 0 ? TileMap::kUnmapped : regions[next - 1].tile;
  const auto first = std::ranges::lower_bound(regions, begin, {}, &TileMap::Region::begin);
  std::array<TileMap::Region, 2> made;
  std::size_t num_made = 0;
  if (first == regions.begin() || std::prev(first)->tile != tile) made[num_made++] = {begin, tile};
  if (end < own.elements && after != tile) made[num_made++] = {end, after};
  // `end` itself may begin a region, which `made` also has.
  const auto last =
      end < own.elements ? regions.begin() + static_cast<std::ptrdiff_t>(next) : regions.end();
  const auto kept = std::min<std::size_t>(num_made, static_cast<std::size_t>(last - first));
  const auto at = std::copy_n(made.begin(), kept, first);
  if (kept == num_made)
    regions.erase(at, last);
  else
    regions.insert(at, made.begin() + kept, made.begin() + num_made);
}

TileMapPtr withRegions(const TileMapPtr& map, std::vector<TileMap::Region> regions,
                       std::uint64_t end) {
  if (regions.empty()) return map;
  const auto& old = map->regions;
  const auto before =
      std::ranges::lower_bound(old, regions.front().begin, {}, &TileMap::Region::begin);
  if (end < map->elements) {
    const std::size_t next = map->behind(end);
    regions.push_back({end, next == 0 ? TileMap::kUnmapped : old[next - 1].tile});
    regions.insert(regions.end(), old.begin() + static_cast<std::ptrdiff_t>(next), old.end());
  }
  regions.insert(regions.begin(), old.begin(), before);
  return tileMapOf(map->elements, std::move(regions));
}

}  // namespace ipujax::engine
