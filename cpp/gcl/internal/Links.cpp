#include "gcl/internal/Links.hpp"

#include <algorithm>
#include <cmath>

namespace gcl {
namespace {

// poplibs_test/Util.cpp: 128 Gbit/s (of 1024^3 bits) a link, of which 85 % are data; four links
// between the IPUs of a pair, two up and two down.
constexpr double kLinkBytesPerSecond = 128.0 * 1024 * 1024 * 1024 / 8 * 0.85;
constexpr double kPairBytesPerSecond = 4 * kLinkBytesPerSecond;
constexpr double kRungBytesPerSecond = 2 * kLinkBytesPerSecond;
// Bow-2000 datasheet: two GW-Links of 100 Gbit/s for each IPU-Machine, between racks.
constexpr double kGatewayBytesPerSecond = 2 * 100e9 / 8;
constexpr unsigned kIpusPerMachine = 4;
constexpr unsigned kIpusPerRack = 64;  // Bow Pod64: 16 machines a rack

double most(const std::vector<double>& loads) {
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

}  // namespace

LinkLoads::LinkLoads(unsigned num_ipus)
    : across_(num_ipus + num_ipus % 2),
      up_(across_.size()),
      down_(across_.size()),
      gateways_(across_.size() / kIpusPerMachine + 1) {}

void LinkLoads::send(unsigned from, unsigned to, double bytes) {
  const unsigned rack = to / kIpusPerRack;
  if (from / kIpusPerRack != rack) {
    gateways_[from / kIpusPerMachine] += bytes;
    from = std::min<unsigned>(rack * kIpusPerRack + from % kIpusPerRack,
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
  return std::max({most(across_) / kPairBytesPerSecond, most(up_) / kRungBytesPerSecond,
                   most(down_) / kRungBytesPerSecond, most(gateways_) / kGatewayBytesPerSecond});
}

double linkSyncCycles(unsigned num_ipus, double clock_hz, unsigned global_sync_cycles) {
  // poplibs_test/Util.cpp setGlobalSyncLatency: 15 ns a hop, there and back.
  const double hops = 1 + std::floor(num_ipus / 2 / 2.0);
  return std::max<double>(global_sync_cycles, std::ceil(15e-9 * clock_hz * hops * 2));
}

}  // namespace gcl
