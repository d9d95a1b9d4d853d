#pragma once
#include <cstdint>
#include <vector>

#include "engine/graph/TileMap.hpp"

namespace ipujax::engine {

/// `map` with the elements from the first of `regions`, which are sorted, up to `end` moved to
/// these regions.
TileMapPtr withRegions(const TileMapPtr& map, std::vector<TileMap::Region> regions,
                       std::uint64_t end);

}  // namespace ipujax::engine
