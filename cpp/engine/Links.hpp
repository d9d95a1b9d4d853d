#pragma once
#include <vector>

#include "engine/Machine.hpp"

namespace ipujax::engine {

/// The IPU-Links of a system, as loads of one exchange between IPUs. IPUs stand in a ladder: 2r and
/// 2r + 1 are the pair of rung r, two rungs are one IPU-Machine, 16 machines a rack. A message
/// crosses its rung first and then goes up or down its side (poplibs_test/Util.cpp: the routes of
/// the IPU Model); between racks it leaves through its machine's gateway.
class LinkLoads {
 public:
  LinkLoads(unsigned num_ipus, const Machine& machine);
  void send(unsigned from, unsigned to, double bytes);
  /// Until the busiest link has passed its bytes on; each link carries both directions at once.
  double seconds() const;

 private:
  void sendInRack(unsigned from, unsigned to, double bytes);

  const Machine& machine_;
  std::vector<double> across_;    ///< by sending IPU: to the other of its pair
  std::vector<double> up_;        ///< by sending IPU: to the next rung, same side
  std::vector<double> down_;      ///< by sending IPU: to the rung before, same side
  std::vector<double> gateways_;  ///< by sending machine
};

/// Tile cycles until all IPUs of a system have met.
double linkSyncCycles(unsigned num_ipus, const Machine& machine);

}  // namespace ipujax::engine
