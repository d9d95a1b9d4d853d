#include "gcl/TileAllocation.hpp"

#include <algorithm>
#include <numeric>

namespace gcl {

unsigned getMinIoTiles(const poplar::Graph& graph) {
  return std::min(32U, graph.getTarget().getTilesPerIPU());
}

std::vector<unsigned> perIPUTiles(const poplar::Graph& graph, unsigned offset, unsigned count,
                                  bool /*sorted*/, bool /*tilePairs*/) {
  const unsigned tiles = graph.getTarget().getTilesPerIPU();
  if (offset > tiles || count > tiles - offset)
    throw poplar::poplar_error("[gcl::perIPUTiles] needs at most " + std::to_string(tiles) +
                               " tiles, those left out included; got " + std::to_string(count) +
                               " after " + std::to_string(offset) + ". Ask for fewer.");
  std::vector<unsigned> found(count);
  std::iota(found.begin(), found.end(), offset);
  return found;
}

}  // namespace gcl
