// Mappings that are changed in place, against those made anew.
#include <random>

#include "Check.hpp"
#include "engine/graph/TileMap.hpp"
#include "engine/graph/TileRegions.hpp"

using namespace ipujax::engine;

namespace {

void checkSame(const TileMap& a, const TileMap& b) {
  CHECK(a.regions == b.regions);
  CHECK(a.per_tile == b.per_tile);
  CHECK_EQ(a.tiles_used, b.tiles_used);
  CHECK_EQ(a.max_per_tile, b.max_per_tile);
  CHECK_EQ(a.complete, b.complete);
}

}  // namespace

TEST(regions_set_in_place_are_those_of_a_new_mapping) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const std::uint64_t elements = 1 + random() % 40;
    TileMapPtr changed = unmapped(elements);
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t begin = random() % (elements + 1);
      const std::uint64_t end = begin + random() % (elements - begin + 1);
      const auto tile = static_cast<std::uint32_t>(random() % 5);
      const TileMapPtr made = withRegion(changed, begin, end, tile);
      const TileMapPtr other = i % 7 == 0 ? changed : nullptr;
      const auto before = other ? other->regions : std::vector<TileMap::Region>();
      if (made == changed) continue;  // nothing was moved
      setRegion(changed, begin, end, tile);
      checkSame(*changed, *made);
      if (other) CHECK(other->regions == before);  // whoever shares a mapping keeps it
    }
  }
}

TEST(cells_mapped_call_by_call_take_no_copy_of_their_mapping) {
  constexpr std::uint64_t kCells = 1000;
  TileMapPtr map = unmapped(kCells);
  setRegion(map, 0, 1, 0);
  const TileMap* const first = map.get();
  for (std::uint64_t i = 1; i < kCells; ++i) setRegion(map, i, i + 1, i % 7);
  CHECK(map.get() == first);
  CHECK_EQ(map->regions.size(), kCells);
  CHECK(map->complete);
}
