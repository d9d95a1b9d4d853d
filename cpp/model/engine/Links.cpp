#include "engine/Links.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace ipujax::engine {
namespace {

double most(const std::vector<double>& loads) {
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

double bytesPerSecond(Link::Kind kind, const Machine& machine) {
  if (kind == Link::kGateway) return machine.gateway_bytes_per_second;
  return machine.link_bytes_per_second *
         (kind == Link::kAcross ? machine.links_across : machine.links_along);
}

}  // namespace

void route(unsigned from, unsigned to, unsigned num_ipus, const Machine& machine,
           const std::function<void(Link)>& use) {
  const unsigned in_rack = machine.ipus_per_rack;
  const unsigned rack = to / in_rack;
  if (from / in_rack != rack) {
    use({Link::kGateway, from / machine.ipus_per_machine});
    from = std::min(rack * in_rack + from % in_rack, num_ipus + num_ipus % 2 - 1);
  }
  if (from % 2 != to % 2) {
    use({Link::kAcross, from});
    from ^= 1U;
  }
  for (; from < to; from += 2) use({Link::kUp, from});
  for (; from > to; from -= 2) use({Link::kDown, from});
}

std::vector<SharedLink> sharedLinks(unsigned num_ipus, const Machine& machine) {
  std::map<std::pair<Link::Kind, unsigned>, SharedLink> links;
  for (unsigned from = 0; from < num_ipus; ++from)
    for (unsigned to = 0; to < num_ipus; ++to)
      route(from, to, num_ipus, machine, [&](Link link) {
        auto& shared = links[{link.kind, link.sender}];
        shared.bytes_per_second = bytesPerSecond(link.kind, machine);
        shared.flows.emplace_back(from, to);
      });
  std::vector<SharedLink> all;
  for (auto& [link, shared] : links) all.push_back(std::move(shared));
  return all;
}

LinkLoads::LinkLoads(unsigned num_ipus, const Machine& machine)
    : machine_(machine), num_ipus_(num_ipus) {
  loads_.fill(std::vector<double>(num_ipus + num_ipus % 2));
}

void LinkLoads::send(unsigned from, unsigned to, double bytes) {
  route(from, to, num_ipus_, machine_, [&](Link link) { loads_[link.kind][link.sender] += bytes; });
}

double LinkLoads::seconds() const {
  double seconds = 0;
  for (const auto kind : {Link::kAcross, Link::kUp, Link::kDown, Link::kGateway})
    seconds = std::max(seconds, most(loads_[kind]) / bytesPerSecond(kind, machine_));
  return seconds;
}

double linkSyncCycles(unsigned num_ipus, const Machine& machine) {
  // poplibs_test/Util.cpp setGlobalSyncLatency: every hop, there and back.
  const double hops = 1 + std::floor(num_ipus / 2 / 2.0);
  return std::max<double>(machine.global_sync_cycles,
                          std::ceil(machine.link_hop_seconds * machine.clock_hz * hops * 2));
}

}  // namespace ipujax::engine
