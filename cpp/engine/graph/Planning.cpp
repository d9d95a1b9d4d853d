#include "engine/graph/Planning.hpp"

#include <algorithm>
#include <cmath>

#include "engine/Links.hpp"

namespace ipujax::engine {
namespace {

std::uint64_t uniqueElements(const View& view) {
  std::uint64_t n = 1;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.strides[i] != 0) n *= view.shape[i];
  }
  return n;
}

/// Elements that must move, in all and on the worst receiving tile, between two maps of one
/// variable's elements.
struct Moved {
  std::uint64_t total = 0;
  std::uint64_t worst = 0;
};

Moved movedBetween(const TileMap& from, const TileMap& to) {
  Moved moved;
  std::vector<std::uint64_t> received(to.per_tile.size());
  std::size_t f = 0;
  for (std::size_t t = 0; t < to.regions.size(); ++t) {
    std::uint64_t at = to.regions[t].begin;
    const std::uint64_t end = to.endOf(t);
    while (at < end) {
      while (f + 1 < from.regions.size() && from.regions[f + 1].begin <= at) ++f;
      const std::uint64_t stop =
          f + 1 < from.regions.size() ? std::min(end, from.regions[f + 1].begin) : end;
      if (to.regions[t].tile != TileMap::kUnmapped && from.regions[f].tile != to.regions[t].tile) {
        received[to.regions[t].tile] += stop - at;
        moved.total += stop - at;
      }
      at = stop;
    }
  }
  for (const auto n : received) moved.worst = std::max(moved.worst, n);
  return moved;
}

/// Whether both are one view of two variables with one mapping.
bool isLaidOutAlike(const GraphImpl& graph, const View& a, const View& b) {
  if (!a.isStrided() || !b.isStrided() || a.offset != b.offset || a.strides != b.strides)
    return false;
  const TileMap& from = *graph.variables[a.variable].map;
  const TileMap& to = *graph.variables[b.variable].map;
  return from.complete && from.elements == to.elements && from.regions == to.regions;
}

Placement placementOfView(const GraphScope& graph, const View& view) {
  Placement placement;
  placement.elements = view.numElements();
  if (view.isStrided()) {
    const TileMap& map = *graph.impl.variables[view.variable].map;
    const std::uint64_t most = map.max_per_tile;
    placement.max_elements_per_tile =
        most == 0 ? placement.elements : std::min<std::uint64_t>(most, placement.elements);
    if (graph.impl.variableOfAll(view)) {
      placement.tiles_used = std::max<std::uint64_t>(map.tiles_used, 1);
      return placement;
    }
  } else {
    for (const auto& piece : view.pieces->views) {
      placement.max_elements_per_tile = std::max(
          placement.max_elements_per_tile, placementOfView(graph, piece).max_elements_per_tile);
    }
  }
  const std::uint64_t most = std::max<std::uint64_t>(placement.max_elements_per_tile, 1);
  placement.tiles_used =
      std::clamp<std::uint64_t>(ceilDiv(placement.elements, most), 1, graph.system.numTiles());
  return placement;
}

}  // namespace

Placement placementOf(const GraphScope& graph, const ViewPtr& tensor) {
  return placementOfView(graph, *tensor);
}

Exchange exchangeBetween(const GraphScope& graph, const ViewPtr& from, const ViewPtr& to) {
  const View& source = *from;
  const View& target = *to;
  const auto bytes = static_cast<double>(sizeOf(source.type));
  if (isLaidOutAlike(graph.impl, source, target)) return {};
  const Variable* held = graph.impl.variableOfAll(source);
  const Variable* wanted = graph.impl.variableOfAll(target);
  if (held && wanted) {
    const auto& a = held->map;
    const auto& b = wanted->map;
    if (a == b || a->regions == b->regions) return {};
    if (a->complete && b->complete) {
      const Moved moved = movedBetween(*a, *b);
      return {static_cast<double>(moved.total) * bytes, static_cast<double>(moved.worst) * bytes};
    }
  }
  // Views of different order: an element is on its new tile already only by chance.
  const Placement placement = placementOf(graph, to);
  const auto worst = static_cast<double>(
      std::min<std::uint64_t>(uniqueElements(source), placement.max_elements_per_tile));
  return {worst * bytes * static_cast<double>(placement.tiles_used), worst * bytes};
}

void addExchange(Cost& cost, const System& system, const Exchange& exchange) {
  if (exchange.bytes <= 0) return;
  cost.exchange_bytes += exchange.bytes;
  cost.exchange_cycles += exchange.worst_tile_bytes / system.machine.exchange_bytes_per_cycle;
  cost.sync_cycles += system.machine.sync_cycles;
}

void addLinkTransfer(Cost& cost, const System& system, unsigned from, unsigned to, double bytes) {
  LinkLoads loads(system.num_ipus, system.machine);
  loads.send(from, to, bytes);
  cost.link_cycles += std::ceil(loads.seconds() * system.machine.clock_hz);
  cost.sync_cycles += 2 * linkSyncCycles(system.num_ipus, system.machine);
  cost.link_bytes += bytes;
}

void addHostTransfer(Cost& cost, const Machine& machine, double bytes) {
  // Nobody published a figure of streaming memory: what the host link passes is the most it can be.
  const double cycles = bytes / machine.host_bytes_per_second * machine.clock_hz;
  cost.link_cycles += std::ceil(cycles) + 2.0 * machine.global_sync_cycles;
  cost.link_bytes += bytes;
}

void addComputeSet(Cost& cost, const System& system, double worst_cycles, std::uint64_t busy_tiles,
                   double mean_busy_cycles) {
  cost.compute_cycles += worst_cycles;
  cost.mean_compute_cycles +=
      mean_busy_cycles * static_cast<double>(busy_tiles) / system.numTiles();
  cost.sync_cycles += system.machine.sync_cycles;
}

}  // namespace ipujax::engine
