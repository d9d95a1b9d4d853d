#include "poputil/TileMapping.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/TileRegions.hpp"
#include "poputil/exceptions.hpp"
#include "poputil/internal/Aliases.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Tensor;

namespace {

/// The tile at position `i` of the mapping's order.
std::size_t tileAt(std::size_t i, std::size_t num_tiles, unsigned offset, bool ascending) {
  return ((ascending ? i : num_tiles - 1 - i) + offset) % num_tiles;
}

unsigned leastElements(const Graph& graph, const Tensor& t) {
  return static_cast<unsigned>(128 / graph.getTarget().getTypeSize(t.elementType()));
}

unsigned vectorWidth(const Graph& graph, const Tensor& t) {
  return graph.getTarget().getVectorWidth(t.elementType());
}

/// A clone with the order that `method` names; the caller maps it.
Tensor unmappedClone(Graph& graph, const Tensor& t, const poplar::DebugContext& debugContext,
                     poplar::TensorCloneMethod method) {
  if (method == poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES && t.containsAliases())
    return graph.clone(t, debugContext, method);
  return graph.addVariable(t.elementType(), t.shape(), debugContext);
}

void checkIpu(const Graph& graph, unsigned ipu, const char* where) {
  if (ipu < graph.getTarget().getNumIPUs()) return;
  throw poputil::poplibs_error(std::string("[poputil::") + where + "] needs an IPU below " +
                               std::to_string(graph.getTarget().getNumIPUs()) + "; got " +
                               std::to_string(ipu) + ". Use an IPU of the graph.");
}

/// Whether elements along `dimension` lie in different parts; partOf gives the part of a tile.
template <class PartOf>
bool isSplit(const Graph& graph, const Tensor& t, unsigned dimension, const PartOf& partOf) {
  const Tensor rows = t.dimRoll(dimension, t.rank() - 1);
  const std::size_t n = t.dim(dimension);
  const std::vector<std::size_t> shape{t.numElements() / n, n};
  std::vector<std::size_t> part_of_row(shape[0], ~std::size_t{0});
  const auto mapping = graph.getTileMapping(rows.reshape(shape));
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    for (const auto& region : mapping[tile]) {
      for (std::size_t row = region.begin() / n; row * n < region.end(); ++row) {
        if (part_of_row[row] != ~std::size_t{0} && part_of_row[row] != partOf(tile)) return true;
        part_of_row[row] = partOf(tile);
      }
    }
  }
  return false;
}

}  // namespace

Graph::TileToTensorMapping calcLinearTileMapping(const Graph& graph,
                                                 poplar::ArrayRef<std::size_t> shape,
                                                 unsigned minElementsPerTile, unsigned grainSize,
                                                 unsigned offset, bool ascendingOrder) {
  const auto& tiles = graph.physicalTiles();
  std::vector<std::size_t> numbers(*std::ranges::max_element(tiles) + std::size_t{1});
  for (std::size_t i = 0; i < tiles.size(); ++i) numbers[tiles[i]] = i;
  const auto map = graph.impl().linearMap(ipujax::engine::elementsOf(shape), tiles,
                                          {minElementsPerTile, grainSize});
  Graph::TileToTensorMapping mapping(tiles.size());
  for (std::size_t i = 0; i < map->regions.size(); ++i) {
    const std::size_t at = numbers[map->regions[i].tile];
    mapping[tileAt(at, tiles.size(), offset, ascendingOrder)].emplace_back(map->regions[i].begin,
                                                                           map->endOf(i));
  }
  return mapping;
}

Graph::TileToTensorMapping calcLinearTileMapping(const Graph& graph, const Tensor& t,
                                                 unsigned offset, bool ascendingOrder) {
  return calcLinearTileMapping(graph, t.shape(), leastElements(graph, t), vectorWidth(graph, t),
                               offset, ascendingOrder);
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
  } else if (t.view()->isContiguous()) {
    const auto part = graph.impl().linearMap(t.numElements(), graph.physicalTiles(),
                                             {leastElements(graph, t), vectorWidth(graph, t)});
    const auto first = static_cast<std::uint64_t>(t.view()->offset);
    auto regions = part->regions;
    for (auto& region : regions) region.begin += first;
    auto& map = graph.impl().variables[t.view()->variable].map;
    map = ipujax::engine::withRegions(map, std::move(regions), first + part->elements);
  } else {
    graph.setTileMapping(t, calcLinearTileMapping(graph, t));
  }
}

void mapTensorLinearlyWithOffset(Graph& graph, const Tensor& t, unsigned minElementsPerTile,
                                 unsigned grainSize, unsigned offset, bool ascendingOrder) {
  graph.setTileMapping(t, calcLinearTileMapping(graph, t.shape(), minElementsPerTile, grainSize,
                                                offset, ascendingOrder));
}

void mapTensorLinearlyWithOffset(Graph& graph, const Tensor& t, unsigned offset,
                                 bool ascendingOrder) {
  graph.setTileMapping(t, calcLinearTileMapping(graph, t, offset, ascendingOrder));
}

namespace {

std::size_t elementsIn(const std::vector<poplar::Interval>& regions) {
  std::size_t n = 0;
  for (const auto& region : regions) n += region.size();
  return n;
}

/// Elements of the fullest tile in an even mapping.
std::size_t evenShare(std::size_t total, std::size_t tiles, unsigned min_per_tile,
                      unsigned grain_size) {
  const std::size_t grain = std::max(1u, grain_size);
  const std::size_t even = (total + tiles - 1) / tiles;
  return std::max<std::size_t>(min_per_tile, (even + grain - 1) / grain * grain);
}

}  // namespace

unsigned getTileImbalance(const Graph::TileToTensorMapping& mapping, unsigned minElementsPerTile,
                          unsigned grainSize) {
  std::size_t total = 0;
  std::size_t most = 0;
  for (const auto& regions : mapping) {
    const std::size_t elements = elementsIn(regions);
    total += elements;
    most = std::max(most, elements);
  }
  if (mapping.empty()) return 0;
  const std::size_t expected = evenShare(total, mapping.size(), minElementsPerTile, grainSize);
  return static_cast<unsigned>(most > expected ? most - expected : 0);
}

unsigned getTileImbalance(const Graph& graph, const Tensor& t, unsigned minElementsPerTile,
                          unsigned grainSize) {
  return getTileImbalance(graph.getTileMapping(t), minElementsPerTile, grainSize);
}

void rebalanceTensor(Graph& graph, const Tensor& t, unsigned minElementsPerTile, unsigned grainSize,
                     unsigned imbalanceThreshold) {
  auto mapping = graph.getTileMapping(t);
  if (getTileImbalance(mapping, minElementsPerTile, grainSize) <= imbalanceThreshold) return;
  const std::size_t grain = std::max(1u, grainSize);
  const std::size_t share =
      evenShare(t.numElements(), mapping.size(), minElementsPerTile, grainSize);
  std::vector<poplar::Interval> surplus;
  for (auto& regions : mapping)
    for (std::size_t have = elementsIn(regions); have > share;) {
      const auto last = regions.back();
      const std::size_t over = (have - share + grain - 1) / grain * grain;
      const std::size_t moved = std::min(over, last.size());
      surplus.emplace_back(last.end() - moved, last.end());
      regions.pop_back();
      if (moved < last.size()) regions.emplace_back(last.begin(), last.end() - moved);
      have -= moved;
    }
  for (auto& regions : mapping)
    for (std::size_t have = elementsIn(regions); have < share && !surplus.empty();) {
      const auto next = surplus.back();
      const std::size_t moved = std::min(share - have, next.size());
      regions.emplace_back(next.begin(), next.begin() + moved);
      surplus.pop_back();
      if (moved < next.size()) surplus.emplace_back(next.begin() + moved, next.end());
      have += moved;
    }
  graph.setTileMapping(t, mapping);
}

void rebalanceTensor(Graph& graph, const Tensor& t) {
  const auto& target = graph.getTarget();
  const std::size_t size = target.getTypeSize(t.elementType());
  rebalanceTensor(graph, t, static_cast<unsigned>(128 / size),
                  target.getVectorWidth(t.elementType()), 0);
}

void mapOutputForElementWiseOp(Graph& graph, const std::vector<Tensor>& inputs,
                               const Tensor& output, unsigned grainSize,
                               unsigned minGrainsPerTile) {
  const std::size_t grain = std::max(1u, grainSize);
  const std::size_t least = grain * minGrainsPerTile;
  std::size_t best = 0;
  Graph::TileToTensorMapping mapping;
  for (const auto& input : inputs) {
    // Skips inputs whose elements do not match the output's one to one.
    if (input.numElements() != output.numElements() || !input.isParallelWriteable()) continue;
    auto candidate = graph.getTileMapping(input);
    bool fits = true;
    std::size_t most = 0;
    for (const auto& regions : candidate) {
      const std::size_t elements = elementsIn(regions);
      fits = fits && (elements == 0 || elements >= least);
      for (const auto& region : regions) fits = fits && region.size() % grain == 0;
      most = std::max(most, elements);
    }
    if (!fits || (!mapping.empty() && most >= best)) continue;
    best = most;
    mapping = std::move(candidate);
  }
  if (mapping.empty())
    mapTensorLinearly(graph, output, static_cast<unsigned>(least), static_cast<unsigned>(grain));
  else
    graph.setTileMapping(output, mapping);
}

bool dimIsSplitOverTiles(const Graph& graph, const Tensor& t, unsigned dimension) {
  return isSplit(graph, t, dimension, [](unsigned tile) { return std::size_t{tile}; });
}

bool dimIsSplitOverIPUs(const Graph& graph, const Tensor& t, unsigned dimension) {
  const unsigned per_ipu = graph.getTarget().getTilesPerIPU();
  return isSplit(graph, t, dimension, [=](unsigned tile) { return std::size_t{tile / per_ipu}; });
}

Tensor cloneToIpu(Graph& graph, const Tensor& t, unsigned dstIPU,
                  const poplar::DebugContext& debugContext, poplar::TensorCloneMethod method) {
  checkIpu(graph, dstIPU, "cloneToIpu");
  const unsigned per_ipu = graph.getTarget().getTilesPerIPU();
  const Tensor clone = unmappedClone(graph, t, debugContext, method);
  const auto from = graph.getTileMapping(t, false);
  Graph::TileToTensorMapping to(graph.getTarget().getNumTiles());
  for (std::size_t tile = 0; tile < from.size(); ++tile) {
    auto& there = to[dstIPU * per_ipu + tile % per_ipu];
    there.insert(there.end(), from[tile].begin(), from[tile].end());
  }
  graph.setTileMapping(clone, to);
  return clone;
}

Tensor cloneToGraph(Graph& srcGraph, Graph& dstGraph, const Tensor& t,
                    const poplar::DebugContext& debugContext, poplar::TensorCloneMethod method) {
  auto mapping = srcGraph.getTileMapping(t, false);
  const std::size_t num_tiles = dstGraph.getTarget().getNumTiles();
  for (std::size_t tile = num_tiles; tile < mapping.size(); ++tile)
    if (!mapping[tile].empty())
      throw poplibs_error("[poputil::cloneToGraph] needs a graph with more than " +
                          std::to_string(tile) + " tiles; got " + std::to_string(num_tiles) +
                          ". Use a larger virtual graph.");
  mapping.resize(num_tiles);
  const Tensor clone = unmappedClone(dstGraph, t, debugContext, method);
  dstGraph.setTileMapping(clone, mapping);
  return clone;
}

Tensor createIpuCopy(Graph& graph, const Tensor& t, unsigned dstIpu, Tensor& copySrc,
                     Tensor& copyDst, const poplar::DebugContext& debugContext,
                     poplar::TensorCloneMethod method) {
  const Tensor clone = cloneToIpu(graph, t, dstIpu, debugContext, method);
  std::tie(copySrc, copyDst) = internal::withoutAliases(graph, t, clone);
  return clone;
}

Tensor createBroadcastOperand(Graph& graph, const Tensor& fullTensor, const poplar::Type& type,
                              unsigned dim, bool, const poplar::DebugContext& debugContext) {
  const std::size_t n = fullTensor.dim(dim);
  const Tensor operand = graph.addVariable(type, {n}, debugContext);
  const Tensor row = fullTensor.dimRoll(dim, fullTensor.rank() - 1).flatten().slice(0, n);
  graph.setTileMapping(operand, graph.getTileMapping(row));
  return operand;
}

Tensor copyToIpu(Graph& masterGraph, const Tensor& t, poplar::program::Sequence& prog,
                 unsigned dstIPU, const poplar::DebugContext& debugContext,
                 poplar::TensorCloneMethod method) {
  const Tensor copy = cloneToIpu(masterGraph, t, dstIPU, debugContext, method);
  const auto [from, to] = internal::withoutAliases(masterGraph, t, copy);
  prog.add(poplar::program::Copy(from, to, false, debugContext));
  return copy;
}

}  // namespace poputil
