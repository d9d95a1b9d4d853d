#pragma once
#include <cstdint>
#include <vector>

#include "engine/graph/TileMap.hpp"

namespace ipujax::engine {

/// `map` with the elements from the first of `regions`, which are sorted, up to `end` moved to
/// these regions.
TileMapPtr withRegions(const TileMapPtr& map, std::vector<TileMap::Region> regions,
                       std::uint64_t end);
/// Moves elements [begin, end) to `tile`, in place if nothing else uses the mapping: so the time to
/// make a mapping call by call does not grow with the square of its regions.
void setRegion(TileMapPtr& map, std::uint64_t begin, std::uint64_t end, std::uint32_t tile);

}  // namespace ipujax::engine
