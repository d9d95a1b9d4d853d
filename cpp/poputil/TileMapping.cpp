#include "poputil/TileMapping.hpp"

#include "engine/graph/GraphImpl.hpp"

namespace poputil {
namespace {

using ipujax::engine::TileMap;
using poplar::Graph;
using poplar::Tensor;

unsigned defaultMinimum(const Graph& graph, const Tensor& t) {
  return static_cast<unsigned>(128 / graph.getTarget().getTypeSize(t.elementType()));
}

}  // namespace

Graph::TileToTensorMapping calcLinearTileMapping(const Graph& graph,
                                                 poplar::ArrayRef<std::size_t> shape,
                                                 unsigned minElementsPerTile, unsigned grainSize) {
  std::size_t elements = 1;
  for (const auto d : shape) elements *= d;
  const unsigned num_tiles = static_cast<unsigned>(graph.physicalTiles().size());
  std::vector<unsigned> tiles(num_tiles);
  for (unsigned i = 0; i < num_tiles; ++i) tiles[i] = i;
  const auto map = ipujax::engine::linearTileMap(elements, tiles, minElementsPerTile, grainSize);
  Graph::TileToTensorMapping mapping(num_tiles);
  for (std::size_t i = 0; i < map->regions.size(); ++i) {
    const std::size_t end = i + 1 < map->regions.size() ? map->regions[i + 1].begin : elements;
    if (end > map->regions[i].begin)
      mapping[map->regions[i].tile].emplace_back(map->regions[i].begin, end);
  }
  return mapping;
}

Graph::TileToTensorMapping calcLinearTileMapping(const Graph& graph, const Tensor& t) {
  return calcLinearTileMapping(graph, t.shape(), defaultMinimum(graph, t),
                               graph.getTarget().getVectorWidth(t.elementType()));
}

void mapTensorLinearly(Graph& graph, const Tensor& t, unsigned minElementsPerTile,
                       unsigned grainSize) {
  const ipujax::engine::View& view = *t.view();
  auto& variables = graph.impl().variables;
  if (view.isContiguous() && variables[view.variable].elements == t.numElements()) {
    variables[view.variable].map = ipujax::engine::linearTileMap(
        t.numElements(), graph.physicalTiles(), minElementsPerTile, grainSize);
    return;
  }
  graph.setTileMapping(t, calcLinearTileMapping(graph, t.shape(), minElementsPerTile, grainSize));
}

void mapTensorLinearly(Graph& graph, const Tensor& t) {
  const ipujax::engine::View& view = *t.view();
  auto& variables = graph.impl().variables;
  if (view.isContiguous() && variables[view.variable].elements == t.numElements() &&
      graph.physicalTiles().size() == graph.impl().all_tiles.size()) {
    variables[view.variable].map =
        graph.impl().linearMap(t.elementType().element(), t.numElements());
    return;
  }
  mapTensorLinearly(graph, t, defaultMinimum(graph, t),
                    graph.getTarget().getVectorWidth(t.elementType()));
}

}  // namespace poputil
