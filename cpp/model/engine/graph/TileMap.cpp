#include "engine/graph/TileMap.hpp"

#include <algorithm>

namespace ipujax::engine {
namespace {

constexpr std::size_t kFew = 8;
constexpr int kTries = 4;

}  // namespace

std::size_t TileMap::behind(std::uint64_t element) const {
  // Most mappings have regions of nearly the same size, so a guess is close.
  if (regions.size() > kFew && element < elements) {
    std::size_t guess = std::min(element * regions.size() / elements, regions.size() - 1);
    for (int tries = 0; tries < kTries; ++tries) {
      if (regions[guess].begin > element) {
        if (guess-- == 0) return 0;
      } else if (guess + 1 == regions.size() || regions[guess + 1].begin > element) {
        return guess + 1;
      } else {
        ++guess;
      }
    }
  }
  const auto next = std::ranges::upper_bound(regions, element, {}, &Region::begin);
  return static_cast<std::size_t>(next - regions.begin());
}

std::uint64_t ipusOf(const TileMap& map, unsigned tiles_per_ipu) {
  std::uint64_t ipus = 0;
  std::uint32_t first = 0;  // of the IPU that the last region was on
  std::uint32_t num = 0;
  for (const auto& region : map.regions) {
    if (region.tile - first < num || region.tile == TileMap::kUnmapped) continue;
    const std::uint32_t ipu = region.tile / tiles_per_ipu;
    ipus |= std::uint64_t{1} << std::min(ipu, 63u);
    first = ipu * tiles_per_ipu;
    num = tiles_per_ipu;
  }
  return ipus;
}

TileMapPtr tileMapOf(std::uint64_t elements, std::vector<TileMap::Region> all) {
  auto map = std::make_shared<TileMap>();
  map->elements = elements;
  map->regions = std::move(all);
  const auto& regions = map->regions;
  map->complete = elements == 0 || (!regions.empty() && regions.front().begin == 0);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].tile == TileMap::kUnmapped) {
      map->complete = false;
      continue;
    }
    if (map->per_tile.size() <= regions[i].tile) map->per_tile.resize(regions[i].tile + 1);
    map->per_tile[regions[i].tile] += static_cast<std::uint32_t>(map->endOf(i) - regions[i].begin);
  }
  for (const auto count : map->per_tile) {
    map->tiles_used += count != 0;
    map->max_per_tile = std::max<std::uint64_t>(map->max_per_tile, count);
  }
  return map;
}

TileMapPtr unmapped(std::uint64_t elements) {
  return tileMapOf(elements, {{0, TileMap::kUnmapped}});
}

std::uint64_t linearTilesUsed(std::uint64_t elements, std::uint64_t num_tiles,
                              const LinearDivision& division) {
  const std::uint64_t grain = std::max<std::uint64_t>(division.grain, 1);
  const std::uint64_t num_grains = (elements + grain - 1) / grain;
  const std::uint64_t min_grains =
      std::max<std::uint64_t>((division.min_per_tile + grain - 1) / grain, 1);
  return std::min(num_tiles, std::max<std::uint64_t>(num_grains / min_grains, 1));
}

TileMapPtr linearTileMap(std::uint64_t elements, const std::vector<unsigned>& tiles,
                         const LinearDivision& division, std::size_t start) {
  const std::uint64_t grain = std::max<std::uint64_t>(division.grain, 1);
  const std::uint64_t num_grains = (elements + grain - 1) / grain;
  const std::uint64_t used = linearTilesUsed(elements, tiles.size(), division);
  std::vector<TileMap::Region> regions;
  regions.reserve(used);
  // Tile t begins at grain t * num_grains / used; the loop updates quotient and remainder.
  const std::uint64_t step = num_grains / used;
  const std::uint64_t step_rest = num_grains % used;
  std::uint64_t begin = 0;
  std::uint64_t rest = 0;
  std::size_t at = start % tiles.size();
  for (std::uint64_t t = 0; t < used && elements > 0; ++t) {
    regions.push_back({std::min(begin * grain, elements), tiles[at]});
    begin += step;
    rest += step_rest;
    if (rest >= used) {
      rest -= used;
      ++begin;
    }
    if (++at == tiles.size()) at = 0;
  }
  return tileMapOf(elements, std::move(regions));
}

TileMapPtr withRegion(const TileMapPtr& map, std::uint64_t begin, std::uint64_t end,
                      std::uint32_t tile) {
  if (begin == end) return map;
  if (begin == 0 && end == map->elements) return tileMapOf(end, {{0, tile}});
  std::vector<TileMap::Region> regions;
  regions.reserve(map->regions.size() + 2);
  const auto push = [&](std::uint64_t at, std::uint32_t on) {
    if (!regions.empty() && regions.back().tile == on) return;
    regions.push_back({at, on});
  };
  for (const auto& region : map->regions) {
    if (region.begin < begin) push(region.begin, region.tile);
  }
  push(begin, tile);
  if (end < map->elements)
    map->forEachPart(end, end + 1, [&](auto on, auto at, auto) { push(at, on); });
  for (const auto& region : map->regions) {
    if (region.begin > end) push(region.begin, region.tile);
  }
  return tileMapOf(map->elements, std::move(regions));
}

}  // namespace ipujax::engine
