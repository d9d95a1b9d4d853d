#pragma once
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "engine/Machine.hpp"

namespace ipujax::engine {

/// A link between IPUs, in one direction: from an IPU to the other of its pair, to the next or the
/// previous rung on its side, or from a machine to other racks.
struct Link {
  enum Kind { kAcross, kUp, kDown, kGateway };
  Kind kind;
  unsigned sender;  ///< an IPU; for gateways a machine
};

/// Calls `use` with each link on the route of a message between two IPUs of a system. IPUs form a
/// ladder: 2r and 2r + 1 are the pair of rung r, two rungs are one IPU-Machine, 16 machines a rack.
/// A message crosses its rung first and then goes up or down its side (poplibs_test/Util.cpp: the
/// routes of the IPU Model); between racks it leaves through its machine's gateway.
void route(unsigned from, unsigned to, unsigned num_ipus, const Machine& machine,
           const std::function<void(Link)>& use);

/// A link with all pairs of IPUs, sender first, whose messages use it.
struct SharedLink {
  double bytes_per_second;
  std::vector<std::pair<unsigned, unsigned>> flows;
};
std::vector<SharedLink> sharedLinks(unsigned num_ipus, const Machine& machine);

/// Loads of a system's links in one exchange between IPUs.
class LinkLoads {
 public:
  LinkLoads(unsigned num_ipus, const Machine& machine);
  void send(unsigned from, unsigned to, double bytes);
  /// Time of the busiest link; each link carries both directions at once.
  double seconds() const;

 private:
  const Machine& machine_;
  unsigned num_ipus_;
  std::array<std::vector<double>, 4> loads_;  ///< by kind and sender
};

/// Tile cycles of a sync of all IPUs of a system.
double linkSyncCycles(unsigned num_ipus, const Machine& machine);

}  // namespace ipujax::engine
