#include "gcl/internal/Cost.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/Links.hpp"
#include "engine/graph/Planning.hpp"
#include "poplar/exceptions.hpp"
#include "popops/internal/ElementWiseCost.hpp"

namespace gcl {

using ipujax::engine::LinkLoads;
using ipujax::engine::linkSyncCycles;
namespace {

using ipujax::engine::Cost;
using Groups = std::vector<std::vector<unsigned>>;

constexpr std::uint64_t kCodeBytes = 1200;  // our estimate: send and receive of one step, a loop

/// Members in the order of a ring: up the ladder on one side and down on the other, so that
/// neighbours are linked. `mirrored` begins on the other side.
std::vector<unsigned> ringOrder(std::vector<unsigned> members, unsigned ipus, bool mirrored) {
  std::sort(members.begin(), members.end());
  if (ipus > 1) {  // a replica covers whole rungs
    if (mirrored) std::reverse(members.begin(), members.end());
    return members;
  }
  const unsigned first = mirrored ? 1 : 0;
  std::vector<unsigned> order;
  for (const unsigned r : members) {
    if (r % 2 == first) order.push_back(r);
  }
  for (auto r = members.rbegin(); r != members.rend(); ++r) {
    if (*r % 2 != first) order.push_back(*r);
  }
  return order;
}

/// Adds up the phases of one collective on the slowest replica.
class Account {
 public:
  Account(const poplar::Target& target, poplar::Type type, unsigned num_replicas)
      : target_(target),
        type_(type),
        size_(static_cast<double>(target.getTypeSize(type))),
        num_ipus_(num_replicas * target.getNumIPUs()) {
    cost_.code_bytes = kCodeBytes;
  }

  LinkLoads loads() const { return {num_ipus_, target_.machine()}; }
  /// Sends from replica to replica: each IPU sends its share to its counterpart.
  void send(LinkLoads& loads, unsigned from, unsigned to, double elements) const {
    const unsigned ipus = target_.getNumIPUs();
    const double bytes = elements * size_ / ipus;
    for (unsigned i = 0; i < ipus; ++i) loads.send(from * ipus + i, to * ipus + i, bytes);
  }

  /// `count` times: all meet, the links carry `loads`, each replica gets `received` elements.
  void transfer(const LinkLoads& loads, double received, double count) {
    if (count <= 0) return;
    const double clock = target_.getTileClockFrequency();
    cost_.link_cycles +=
        count * (std::ceil(loads.seconds() * clock) + linkSyncCycles(num_ipus_, target_.machine()));
    cost_.link_bytes += count * received * size_;
    cost_.exchange_bytes += count * received * size_;  // from the links to the tiles
    const auto bytes = static_cast<std::uint64_t>(perTile(received) * size_);
    cost_.raiseTemporaries(bytes, 0, bytes);
  }

  /// `count` times: a replica combines `elements` of its elements with received ones.
  void combine(double elements, double count) {
    if (count <= 0 || elements <= 0) return;
    const double each = perTile(elements);
    const poplar::Type type = type_ == poplar::BOOL ? poplar::UNSIGNED_CHAR : type_;
    const double cycles = popops::elementwiseCycles("add", type, static_cast<std::uint64_t>(each),
                                                    target_.getNumWorkerContexts());
    const auto busy = static_cast<std::uint64_t>(std::ceil(elements / each));
    Cost once;
    ipujax::engine::addComputeSet(once, target_, cycles, busy);
    cost_.compute_cycles += count * once.compute_cycles;
    cost_.mean_compute_cycles += count * once.mean_compute_cycles;
    cost_.sync_cycles += count * once.sync_cycles;
    cost_.flops += count * elements;
  }

  const Cost& cost() const { return cost_; }

 private:
  double perTile(double elements) const { return std::ceil(elements / target_.getNumTiles()); }

  const poplar::Target& target_;
  poplar::Type type_;
  double size_;
  unsigned num_ipus_;
  Cost cost_;
};

/// A direction of a ring: which order, and which way round.
struct Way {
  bool mirrored;
  bool backwards;
};

LinkLoads ringLoads(const Account& account, const Groups& groups, unsigned ipus,
                    const std::vector<Way>& ways, double fragment) {
  LinkLoads loads = account.loads();
  for (const auto& group : groups) {
    for (const Way& way : ways) {
      const auto order = ringOrder(group, ipus, way.mirrored);
      const std::size_t p = order.size();
      for (std::size_t i = 0; i < p; ++i) {
        const unsigned next = order[(i + 1) % p];
        way.backwards ? account.send(loads, next, order[i], fragment)
                      : account.send(loads, order[i], next, fragment);
      }
    }
  }
  return loads;
}

std::vector<Way> waysOf(Method method) {
  switch (method) {
    case Method::kAnticlockwiseRing:
      return {{false, true}};
    case Method::kBidirectionalRingPair:
    case Method::kMeetInMiddleRing:
      return {{false, false}, {false, true}};
    case Method::kQuadDirectionalRing:
      return {{false, false}, {false, true}, {true, false}, {true, true}};
    default:
      return {{false, false}};
  }
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}
bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather;
}

/// GCL User Guide, "Collective methods": fragments travel round the ring once for the reduction and
/// once for the gather.
Cost ringCost(const poplar::Target& target, const CollectiveWork& work, Method method,
              std::size_t p) {
  Account account(target, work.type, work.num_replicas);
  const bool meets = method == Method::kMeetInMiddleRing;
  auto ways = waysOf(method);
  const double parts = static_cast<double>(p) * (meets ? 1.0 : static_cast<double>(ways.size()));
  const double fragment = std::ceil(static_cast<double>(work.elements) / parts);
  // With kMeetInMiddleRing, all fragments go both ways at once, for half of the steps each.
  double steps = static_cast<double>(p - 1);
  const double last = meets ? static_cast<double>((p - 1) % 2) : 0;
  if (meets) steps = static_cast<double>((p - 1) / 2);
  const auto pass = [&](const std::vector<Way>& active, double count) {
    const LinkLoads loads = ringLoads(account, work.groups, target.getNumIPUs(), active, fragment);
    const double received = fragment * static_cast<double>(active.size());
    for (const bool wanted : {reduces(work.kind), gathers(work.kind)}) {
      if (wanted) account.transfer(loads, received, count);
    }
    if (reduces(work.kind)) account.combine(received, count);
  };
  pass(ways, steps);
  if (last > 0) pass({{false, false}}, last);
  return account.cost();
}

/// Each member sends all its own data to all others at once.
Cost broadcastCost(const poplar::Target& target, const CollectiveWork& work, std::size_t p) {
  Account account(target, work.type, work.num_replicas);
  LinkLoads loads = account.loads();
  double own = static_cast<double>(work.elements);
  if (work.kind != CollectiveKind::kAllReduce) own = std::ceil(own / static_cast<double>(p));
  for (const auto& group : work.groups) {
    for (const unsigned from : group) {
      for (const unsigned to : group) {
        if (from != to) account.send(loads, from, to, own);
      }
    }
  }
  account.transfer(loads, own * static_cast<double>(p - 1), 1);
  if (reduces(work.kind)) account.combine(own * static_cast<double>(p - 1), 1);
  return account.cost();
}

/// One step for each distance round the ring.
Cost allToAllCost(const poplar::Target& target, const CollectiveWork& work, std::size_t p) {
  Account account(target, work.type, work.num_replicas);
  const double each = std::ceil(static_cast<double>(work.elements) / static_cast<double>(p));
  for (std::size_t distance = 1; distance < p; ++distance) {
    LinkLoads loads = account.loads();
    for (const auto& group : work.groups) {
      const auto order = ringOrder(group, target.getNumIPUs(), false);
      for (std::size_t i = 0; i < order.size(); ++i) {
        account.send(loads, order[i], order[(i + distance) % order.size()], each);
      }
    }
    account.transfer(loads, each, 1);
  }
  return account.cost();
}

/// The quad ring needs two rings: an even number of members that cover more than one pair.
bool allowsQuad(std::size_t p) { return p >= 4 && p % 2 == 0; }

Cost costBy(const poplar::Target& target, const CollectiveWork& work, Method method,
            std::size_t p) {
  return method == Method::kBroadcast ? broadcastCost(target, work, p)
                                      : ringCost(target, work, method, p);
}

}  // namespace

Cost costOf(const poplar::Target& target, const CollectiveWork& work, const Options& options,
            Method* chosen) {
  std::size_t p = 1;
  for (const auto& group : work.groups) p = std::max(p, group.size());
  if (chosen) *chosen = options.method;
  if (p == 1 || work.elements == 0) return {};
  if (work.kind == CollectiveKind::kAllToAll) return allToAllCost(target, work, p);
  if (options.method == Method::kQuadDirectionalRing && !allowsQuad(p)) {
    throw poplar::invalid_option(
        "[gcl] method 'quad_directional_ring' needs groups of an even "
        "size of at least 4; got " +
        std::to_string(p) + ". Use bidirectional_ring_pair.");
  }
  if (options.method != Method::kAuto) return costBy(target, work, options.method, p);
  const std::uint64_t bytes = work.elements * target.getTypeSize(work.type);
  Cost best;
  bool found = false;
  for (const Method method :
       {Method::kBroadcast, Method::kBidirectionalRingPair, Method::kMeetInMiddleRing,
        Method::kClockwiseRing, Method::kQuadDirectionalRing}) {
    if (method == Method::kBroadcast && bytes * p > options.max_broadcast_bytes) continue;
    if (method == Method::kQuadDirectionalRing && !allowsQuad(p)) continue;
    const Cost cost = costBy(target, work, method, p);
    if (found && cost.cycles() >= best.cycles()) continue;
    best = cost;
    found = true;
    if (chosen) *chosen = method;
  }
  return best;
}

Cost sendCost(const poplar::Target& target, poplar::Type type, std::uint64_t elements,
              const std::vector<std::pair<unsigned, unsigned>>& pairs, unsigned num_replicas) {
  Account account(target, type, num_replicas);
  LinkLoads loads = account.loads();
  bool travels = false;
  for (const auto& [from, to] : pairs) {
    if (from == to) continue;
    account.send(loads, from, to, static_cast<double>(elements));
    travels = true;
  }
  if (travels && elements > 0) account.transfer(loads, static_cast<double>(elements), 1);
  return account.cost();
}

}  // namespace gcl
