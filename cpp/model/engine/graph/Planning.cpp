#include "engine/graph/Planning.hpp"

#include <algorithm>
#include <cmath>

#include "engine/graph/LinkTransfer.hpp"

namespace ipujax::engine {
namespace {

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

void addExchange(Cost& cost, const System& system, const Exchange& exchange) {
  if (exchange.bytes <= 0) return;
  cost.exchange_bytes += exchange.bytes;
  const double busiest = std::max(exchange.worst_tile_bytes, exchange.worst_sent_bytes);
  cost.exchange_cycles += busiest / system.machine.exchange_bytes_per_cycle;
  cost.sync_cycles += system.machine.sync_cycles;
}

void addLinkTransfer(Cost& cost, const System& system, unsigned from, unsigned to, double bytes) {
  addLinkTransfer(cost, system, LinkBytes{{{from, to}, bytes}});
}

void addHostTransfer(Cost& cost, const GraphScope& graph, double bytes, double requests) {
  const Machine& machine = graph.impl.system.machine;
  const unsigned on_link = machine.ipus_per_host_link / graph.impl.system.num_ipus;
  const unsigned sharing = std::clamp(on_link, 1u, graph.impl.replication_factor);
  const double seconds =
      bytes * sharing / machine.host_bytes_per_second + requests * machine.host_latency_seconds;
  cost.host_cycles += std::ceil(seconds * machine.clock_hz);
  cost.host_bytes += bytes;
}

void addStreamingTransfer(Cost& cost, const Machine& machine, double bytes) {
  const double cycles = bytes / machine.streaming_bytes_per_second * machine.clock_hz;
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
