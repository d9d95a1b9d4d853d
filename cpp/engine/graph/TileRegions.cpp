#include "engine/graph/TileRegions.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ipujax::engine {

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
