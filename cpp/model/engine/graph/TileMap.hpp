#pragma once
#include <algorithm>
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

  /// Where region `i` ends.
  std::uint64_t endOf(std::size_t i) const {
    return i + 1 < regions.size() ? regions[i + 1].begin : elements;
  }
  /// The index of the first region that begins after an element.
  std::size_t behind(std::uint64_t element) const;
  /// Calls fn(tile, from, to) for the parts of elements [begin, end) on one tile each, in order.
  template <class F>
  void forEachPart(std::uint64_t begin, std::uint64_t end, const F& fn) const {
    for (std::size_t next = behind(begin); begin < end; ++next) {
      const std::uint64_t to = next < regions.size() ? std::min(end, regions[next].begin) : end;
      fn(next == 0 ? kUnmapped : regions[next - 1].tile, begin, to);
      begin = to;
    }
  }
};

using TileMapPtr = std::shared_ptr<const TileMap>;

/// One bit for each IPU that holds some of the elements; IPUs from the 64th on share the last bit.
std::uint64_t ipusOf(const TileMap& map, unsigned tiles_per_ipu);

TileMapPtr unmapped(std::uint64_t elements);
/// How a linear mapping divides elements: in grains, with a least number for each tile.
struct LinearDivision {
  std::uint64_t min_per_tile = 1;
  std::uint64_t grain = 1;
  friend auto operator<=>(const LinearDivision&, const LinearDivision&) = default;
};
/// The number of tiles, at most `num_tiles`, that an even spread needs; 1 for no elements.
std::uint64_t linearTilesUsed(std::uint64_t elements, std::uint64_t num_tiles,
                              const LinearDivision& division);
/// Even spread over `tiles` (physical numbers), in order from index `start`, wrapping at the end.
TileMapPtr linearTileMap(std::uint64_t elements, const std::vector<unsigned>& tiles,
                         const LinearDivision& division, std::size_t start = 0);
TileMapPtr tileMapOf(std::uint64_t elements, std::vector<TileMap::Region> regions);
/// `map` with elements [begin, end) moved to `tile`.
TileMapPtr withRegion(const TileMapPtr& map, std::uint64_t begin, std::uint64_t end,
                      std::uint32_t tile);

}  // namespace ipujax::engine
