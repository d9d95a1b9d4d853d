#pragma once
#include <vector>

#include "poplar/Graph.hpp"

namespace gcl {

/// The smallest number of tiles of an IPU that collectives and streams can use: 32, or all tiles of
/// a smaller model.
unsigned getMinIoTiles(const poplar::Graph& graph);

/// Tiles of each IPU, for Graph::createVirtualGraph: `count` tiles after the first `offset`. On an
/// IPU the order follows the links; the model's links reach all tiles equally, so tiles are in
/// numerical order. Throws poplar_error if the IPU has too few tiles.
std::vector<unsigned> perIPUTiles(const poplar::Graph& graph, unsigned offset, unsigned count,
                                  bool sorted = true, bool tilePairs = true);

}  // namespace gcl
