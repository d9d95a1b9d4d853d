#include "engine/graph/LinkTransfer.hpp"

#include <cmath>

#include "engine/Links.hpp"

namespace ipujax::engine {

void addLinkTransfer(Cost& cost, const System& system, const LinkBytes& sent) {
  if (sent.empty()) return;
  LinkLoads loads(system.num_ipus, system.machine);
  for (const auto& [ipus, bytes] : sent) {
    loads.send(ipus.first, ipus.second, bytes);
    cost.link_bytes += bytes;
  }
  cost.link_cycles += std::ceil(loads.seconds() * system.machine.clock_hz);
  cost.sync_cycles += 2 * linkSyncCycles(system.num_ipus, system.machine);
}

}  // namespace ipujax::engine
