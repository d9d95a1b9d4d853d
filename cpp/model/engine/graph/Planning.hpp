#pragma once
#include <cstdint>

#include "engine/Cost.hpp"
#include "engine/graph/Exchange.hpp"
#include "engine/graph/GraphImpl.hpp"

/// Closed-form estimates for tile mappings, from which the model's PopLibs functions make costs.
namespace ipujax::engine {

/// How a tensor's elements are spread over the tiles.
struct Placement {
  std::uint64_t elements = 0;
  std::uint64_t tiles_used = 1;
  std::uint64_t max_elements_per_tile = 0;
};
Placement placementOf(const GraphScope& graph, const ViewPtr& tensor);

/// Adds an exchange phase to a cost: cycles of the tile that receives or sends most, and one sync.
void addExchange(Cost& cost, const System& system, const Exchange& exchange);

/// Adds bytes sent from one IPU to another; the IPUs sync before and after.
void addLinkTransfer(Cost& cost, const System& system, unsigned from, unsigned to, double bytes);

/// Adds one transfer between an IPU and the host's memory; the IPU syncs with the host before and
/// after.
void addStreamingTransfer(Cost& cost, const Machine& machine, double bytes);
/// The same between the tiles of all replicas, at the same time, and the host, with `requests`
/// requests to the host.
void addHostTransfer(Cost& cost, const GraphScope& graph, double bytes, double requests);

/// Adds one compute set: worst tile's cycles, busy tiles, and one sync.
void addComputeSet(Cost& cost, const System& system, double worst_cycles, std::uint64_t busy_tiles,
                   double mean_busy_cycles);
inline void addComputeSet(Cost& cost, const System& system, double worst_cycles,
                          std::uint64_t busy_tiles) {
  addComputeSet(cost, system, worst_cycles, busy_tiles, worst_cycles);
}

constexpr std::uint64_t ceilDiv(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace ipujax::engine
