#include "engine/build/TileClasses.hpp"

#include <algorithm>

namespace ipujax::engine::build {
TileClasses::TileClasses(const std::vector<const TileMap*>& maps, std::size_t num_tiles,
                         std::size_t num_ipus, bool apart) {
  std::vector<std::uint64_t> history(num_tiles);
  for (std::size_t t = 0; apart && t < num_tiles; ++t) history[t] = t;
  std::uint64_t number = 0;
  for (const TileMap* map : maps) {
    if (!counts_.try_emplace(map).second) continue;
    const std::uint64_t salt = mixed(++number);
    const std::size_t tiles = std::min(map->per_tile.size(), num_tiles);
    for (std::size_t t = 0; t < tiles; ++t)
      if (map->per_tile[t] != 0) history[t] = mixed(history[t] ^ mixed(salt + map->per_tile[t]));
  }
  class_of_.resize(num_tiles);
  const std::size_t per_ipu = num_tiles / num_ipus;
  for (std::size_t ipu = 0; ipu < num_ipus; ++ipu) {
    first_of_.push_back(tile_of_.size());
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    for (std::size_t t = ipu * per_ipu; t < (ipu + 1) * per_ipu; ++t) {
      const auto next = static_cast<std::uint32_t>(tile_of_.size());
      const auto [found, fresh] = known.try_emplace(history[t], next);
      if (fresh) tile_of_.push_back(static_cast<std::uint32_t>(t));
      class_of_[t] = found->second;
    }
  }
  first_of_.push_back(tile_of_.size());
  for (auto& [map, counts] : counts_)
    for (std::uint32_t c = 0; c < tile_of_.size(); ++c)
      if (tile_of_[c] < map->per_tile.size() && map->per_tile[tile_of_[c]] != 0)
        counts.push_back({c, map->per_tile[tile_of_[c]]});
}

}  // namespace ipujax::engine::build
