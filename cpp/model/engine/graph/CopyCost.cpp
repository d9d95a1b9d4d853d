#include "engine/graph/CopyCost.hpp"

#include <cstdint>
#include <optional>

#include "engine/graph/Exchange.hpp"
#include "engine/graph/LinkTransfer.hpp"
#include "engine/graph/Planning.hpp"

namespace ipujax::engine {

Cost copyCost(const GraphScope& graph, const ViewPtr& src, const ViewPtr& dst) {
  Cost cost;
  const System& system = graph.system;
  const auto bytes_moved = static_cast<double>(dst->numElements() * sizeOf(dst->type));
  for (const ViewPtr& side : {src, dst})
    if (graph.impl.isRemote(*side)) addStreamingTransfer(cost, system.machine, bytes_moved);
  if (cost.link_bytes > 0) return cost;
  const bool several = graph.impl.system.num_ipus > 1;
  const auto from = several ? graph.impl.ipuOf(*src) : std::nullopt;
  const auto to = several ? graph.impl.ipuOf(*dst) : std::nullopt;
  if (from && to && *from != *to) {
    addLinkTransfer(cost, graph.impl.system, *from, *to, bytes_moved);
    return cost;
  }
  const Exchange exchange = exchangeBetween(graph, src, dst);
  if (exchange.bytes > 0) addExchange(cost, system, exchange);
  const Placement placed = placementOf(graph, dst);
  if (placed.elements == 0) return cost;
  // Runs from other tiles need no copy on the tile; data already on their tile are copied there.
  const bool direct = exchange.bytes > 0 && src->isContiguous() && dst->isContiguous();
  const auto bytes = direct ? static_cast<std::uint64_t>(exchange.worst_kept_bytes)
                            : placed.max_elements_per_tile * sizeOf(dst->type);
  if (bytes == 0) return cost;
  addComputeSet(cost, system,
                static_cast<double>(ceilDiv(bytes, system.machine.memcpy_bytes_per_cycle)),
                placed.tiles_used);
  return cost;
}

}  // namespace ipujax::engine
