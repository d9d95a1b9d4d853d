#include "engine/Links.hpp"

#include <algorithm>
#include <cmath>

namespace ipujax::engine {
namespace {

double most(const std::vector<double>& loads) {
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

}  // namespace

LinkLoads::LinkLoads(unsigned num_ipus, const Machine& machine)
    : machine_(machine),
      across_(num_ipus + num_ipus % 2),
      up_(across_.size()),
      down_(across_.size()),
      gateways_(across_.size() / machine.ipus_per_machine + 1) {}

void LinkLoads::send(unsigned from, unsigned to, double bytes) {
  const unsigned in_rack = machine_.ipus_per_rack;
  const unsigned rack = to / in_rack;
  if (from / in_rack != rack) {
    gateways_[from / machine_.ipus_per_machine] += bytes;
    from = std::min<unsigned>(rack * in_rack + from % in_rack,
                              static_cast<unsigned>(across_.size()) - 1);
  }
  sendInRack(from, to, bytes);
}

void LinkLoads::sendInRack(unsigned from, unsigned to, double bytes) {
  if (from % 2 != to % 2) {
    across_[from] += bytes;
    from ^= 1U;
  }
  for (; from < to; from += 2) up_[from] += bytes;
  for (; from > to; from -= 2) down_[from] += bytes;
}

double LinkLoads::seconds() const {
  const double across = machine_.links_across * machine_.link_bytes_per_second;
  const double along = machine_.links_along * machine_.link_bytes_per_second;
  return std::max({most(across_) / across, most(up_) / along, most(down_) / along,
                   most(gateways_) / machine_.gateway_bytes_per_second});
}

double linkSyncCycles(unsigned num_ipus, const Machine& machine) {
  // poplibs_test/Util.cpp setGlobalSyncLatency: every hop, there and back.
  const double hops = 1 + std::floor(num_ipus / 2 / 2.0);
  return std::max<double>(machine.global_sync_cycles,
                          std::ceil(machine.link_hop_seconds * machine.clock_hz * hops * 2));
}

}  // namespace ipujax::engine
