#include <cmath>

#include "engine/build/Draft.hpp"
#include "engine/graph/CopyCost.hpp"
#include "engine/graph/Planning.hpp"

namespace ipujax::engine::build {

Cost hostIoCost(const HostOptions& options, GraphImpl& graph, const ViewPtr& view, bool to_device,
                bool asks) {
  Cost cost;
  const auto bytes = static_cast<double>(view->numElements() * sizeOf(view->type));
  if (bytes == 0 || graph.isRemote(*view)) return cost;
  const bool is_awaited = asks && !(to_device && options.prefetch_depth > 0);
  addHostTransfer(cost, {graph, graph.system}, bytes, is_awaited ? 1 : 0);
  const Machine& machine = graph.system.machine;
  if (options.io_tiles > 0) {
    cost.exchange_cycles = std::ceil(bytes / options.io_tiles / machine.exchange_bytes_per_cycle);
    cost.sync_cycles = machine.sync_cycles;
    cost.exchange_bytes = bytes;
    return cost;
  }
  if (options.rearranges_on_host) return cost;
  // Row-major data arrive spread over the tiles; a copy from there rearranges them.
  const ViewPtr landing = graph.addTemporary(*view, view->shape, "host copy");
  const Cost copy = to_device ? copyCost({graph, graph.system}, landing, view)
                              : copyCost({graph, graph.system}, view, landing);
  if (copy.exchange_bytes == 0 && copy.link_bytes == 0) return cost;
  cost += copy;
  cost.temporary_bytes +=
      static_cast<std::uint64_t>(std::ceil(bytes / graph.system.machine.tiles_per_ipu));
  return cost;
}

}  // namespace ipujax::engine::build
