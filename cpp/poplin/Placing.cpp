#include "poplin/Placing.hpp"

#include <algorithm>

#include "engine/Planning.hpp"
#include "poplar/GraphImpl.hpp"

namespace poplin {
namespace {

using ipujax::engine::ceilDiv;

/// Elements move in units of eight bytes, one load.
std::uint64_t grainOf(const poplar::Tensor& t) {
  return std::max<std::uint64_t>(8 / sizeOf(t.elementType().element()), 1);
}

std::uint64_t tilesFor(std::uint64_t elements, std::uint64_t grain, std::uint64_t per_tile,
                       std::uint64_t tiles) {
  const std::uint64_t grains = ceilDiv(elements, grain);
  const std::uint64_t least = std::max<std::uint64_t>(ceilDiv(per_tile, grain), 1);
  return std::clamp<std::uint64_t>(grains / least, 1, tiles);
}

}  // namespace

void placeAsPlanned(poplar::Graph& graph, const poplar::Tensor& t, std::uint64_t per_tile) {
  if (t.numElements() == 0) return;
  auto& variable = graph.impl().variables[t.view()->variable];
  variable.map =
      poplar::linearTileMap(variable.elements, graph.physicalTiles(), per_tile, grainOf(t));
}

bool isPlacedAsPlanned(const poplar::Graph& graph, const poplar::Tensor& t,
                       std::uint64_t per_tile) {
  const auto& view = *t.view();
  if (!view.isStrided()) return false;
  const auto& variable = graph.impl().variables[view.variable];
  const auto& map = *variable.map;
  const std::uint64_t tiles =
      tilesFor(variable.elements, grainOf(t), per_tile, graph.physicalTiles().size());
  return variable.elements == t.numElements() && map.complete && map.tiles_used == tiles &&
         map.regions.size() == tiles;
}

void addRearrangement(ipujax::engine::Cost& cost, const poplar::Graph& graph,
                      const poplar::Tensor& t, std::uint64_t per_tile, double move_bytes,
                      std::uint64_t tiles) {
  if (move_bytes <= 0 || isPlacedAsPlanned(graph, t, per_tile)) return;
  const auto& target = graph.getTarget();
  ipujax::engine::addExchange(cost, target, {move_bytes * static_cast<double>(tiles), move_bytes});
  // poplibs ConvModel.cpp: regrouping moves bytes * 5/4 at the copy's rate.
  const double copy = move_bytes * 5 / 4 / target.getMemcpyBytesPerCycle();
  ipujax::engine::addComputeSet(cost, target, copy, tiles);
  cost.temporary_bytes += static_cast<std::uint64_t>(move_bytes);
}

}  // namespace poplin
