#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace ipujax::engine {

/// Which tile holds which elements of a variable: sorted regions [begin, next begin) on a tile, and
/// the count per tile. Immutable and shared: equal mappings of equal size are one object.
struct TileMap {
  static constexpr std::uint32_t kUnmapped = ~0u;
  struct Region {
    std::uint64_t begin;
    std::uint32_t tile;
    friend bool operator==(const Region&, const Region&) = default;
  };

  std::uint64_t elements = 0;
  std::vector<Region> regions;
  std::vector<std::uint32_t> per_tile;  ///< elements on each tile, up to the last tile used
  std::uint64_t tiles_used = 0;
  std::uint64_t max_per_tile = 0;
  bool complete = false;

  std::uint32_t tileOf(std::uint64_t element) const;
};

using TileMapPtr = std::shared_ptr<const TileMap>;

TileMapPtr unmapped(std::uint64_t elements);
/// Even spread over `tiles` (physical numbers), in order.
TileMapPtr linearTileMap(std::uint64_t elements, const std::vector<unsigned>& tiles,
                         std::uint64_t min_per_tile, std::uint64_t grain);
TileMapPtr tileMapOf(std::uint64_t elements, std::vector<TileMap::Region> regions);
/// `map` with elements [begin, end) moved to `tile`.
TileMapPtr withRegion(const TileMapPtr& map, std::uint64_t begin, std::uint64_t end,
                      std::uint32_t tile);

}  // namespace ipujax::engine
