#include "poputil/TileMapping.hpp"

#include <algorithm>

#include "engine/graph/GraphImpl.hpp"
#include "poplar/exceptions.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Tensor;

Graph::TileToTensorMapping calcLinearTileMapping(const Graph& graph,
                                                 poplar::ArrayRef<std::size_t> shape,
                                                 unsigned minElementsPerTile, unsigned grainSize) {
  const auto& tiles = graph.physicalTiles();
  std::vector<std::size_t> numbers(*std::ranges::max_element(tiles) + std::size_t{1});
  for (std::size_t i = 0; i < tiles.size(); ++i) numbers[tiles[i]] = i;
  const auto map = graph.impl().linearMap(ipujax::engine::elementsOf(shape), tiles,
                                          {minElementsPerTile, grainSize});
  Graph::TileToTensorMapping mapping(tiles.size());
  for (std::size_t i = 0; i < map->regions.size(); ++i)
    mapping[numbers[map->regions[i].tile]].emplace_back(map->regions[i].begin, map->endOf(i));
  return mapping;
}

Graph::TileToTensorMapping calcLinearTileMapping(const Graph& graph, const Tensor& t) {
  const auto& target = graph.getTarget();
  const auto least = static_cast<unsigned>(128 / target.getTypeSize(t.elementType()));
  return calcLinearTileMapping(graph, t.shape(), least, target.getVectorWidth(t.elementType()));
}

void mapTensorLinearly(Graph& graph, const Tensor& t, unsigned minElementsPerTile,
                       unsigned grainSize) {
  if (auto* variable = graph.impl().variableOfAll(*t.view())) {
    variable->map = graph.impl().linearMap(t.numElements(), graph.physicalTiles(),
                                           {minElementsPerTile, grainSize});
  } else {
    graph.setTileMapping(t, calcLinearTileMapping(graph, t.shape(), minElementsPerTile, grainSize));
  }
}

void mapTensorLinearly(Graph& graph, const Tensor& t) {
  if (auto* variable = graph.impl().variableOfAll(*t.view())) {
    variable->map =
        graph.impl().linearMap(variable->type, variable->elements, graph.physicalTiles());
  } else {
    graph.setTileMapping(t, calcLinearTileMapping(graph, t));
  }
}

Tensor copyToIpu(Graph& masterGraph, const Tensor& t, poplar::program::Sequence& prog,
                 unsigned dstIPU, const poplar::DebugContext& debugContext) {
  const auto& target = masterGraph.getTarget();
  if (dstIPU >= target.getNumIPUs()) {
    throw poplar::poplar_error("[poputil::copyToIpu] needs an IPU below " +
                               std::to_string(target.getNumIPUs()) + "; got " +
                               std::to_string(dstIPU) + ". Use an IPU of the graph.");
  }
  const unsigned per_ipu = target.getTilesPerIPU();
  Tensor copy = masterGraph.addVariable(t.elementType(), t.shape(), debugContext);
  const auto from = masterGraph.getTileMapping(t, false);
  Graph::TileToTensorMapping to(target.getNumTiles());
  for (std::size_t tile = 0; tile < from.size(); ++tile) {
    auto& there = to[dstIPU * per_ipu + tile % per_ipu];
    there.insert(there.end(), from[tile].begin(), from[tile].end());
  }
  masterGraph.setTileMapping(copy, to);
  prog.add(poplar::program::Copy(t, copy, false, debugContext));
  return copy;
}

}  // namespace poputil
