// The link model: growth with bytes and with the ring, the choice of a method, routes.
#include "Check.hpp"
#include "engine/Links.hpp"
#include "gcl/CommGroup.hpp"
#include "gcl/internal/Cost.hpp"
#include "poplar/Target.hpp"

using gcl::CollectiveKind;
using gcl::CommGroup;
using gcl::CommGroupType;
using gcl::Method;
using Groups = std::vector<std::vector<unsigned>>;

namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllGather, CollectiveKind::kAllToAll};
constexpr Method kMethods[] = {Method::kAuto,
                               Method::kClockwiseRing,
                               Method::kAnticlockwiseRing,
                               Method::kBidirectionalRingPair,
                               Method::kMeetInMiddleRing,
                               Method::kQuadDirectionalRing,
                               Method::kBroadcast};

ipujax::engine::Cost cost(CollectiveKind kind, std::uint64_t elements, const Groups& groups,
                          unsigned replicas, Method method = Method::kAuto,
                          Method* chosen = nullptr, unsigned ipus = 1) {
  const auto target = poplar::Target::createIPUTarget(ipus, "gc200");
  gcl::Options options;
  options.method = method;
  return gcl::costOf(target, {kind, poplar::FLOAT, elements, groups, replicas}, options, chosen);
}

}  // namespace

TEST(cost_grows_with_bytes_by_every_method) {
  const Groups groups = CommGroup().members(8);
  for (const auto kind : kKinds) {
    for (const auto method : kMethods) {
      double before = 0;
      double before_bytes = 0;
      for (std::uint64_t n = 1 << 10; n <= 1 << 24; n *= 2) {
        const auto now = cost(kind, n, groups, 8, method);
        CHECK(now.cycles() >= before);
        CHECK(now.link_bytes > before_bytes);
        before = now.cycles();
        before_bytes = now.link_bytes;
      }
      // Twice the bytes of a large array take about twice the time.
      const double one = cost(kind, 1 << 24, groups, 8, method).link_cycles;
      const double two = cost(kind, 1 << 25, groups, 8, method).link_cycles;
      CHECK(two / one > 1.9 && two / one < 2.1);
    }
  }
}

TEST(cost_grows_with_the_ring) {
  for (const auto kind : kKinds) {
    for (const std::uint64_t n : {std::uint64_t{256}, std::uint64_t{1} << 20}) {
      double before = 0;
      for (unsigned p = 2; p <= 64; p *= 2) {
        const double now = cost(kind, n, CommGroup().members(p), p).cycles();
        CHECK(now > before);
        before = now;
      }
    }
  }
}

TEST(ring_moves_the_bytes_that_a_ring_must) {
  // An all-reduce moves 2 (p - 1) / p of the array, and each of its halves half of that.
  const Groups groups = CommGroup().members(4);
  const double bytes = 4.0 * (1 << 20);
  for (const auto method : {Method::kClockwiseRing, Method::kBidirectionalRingPair,
                            Method::kMeetInMiddleRing, Method::kQuadDirectionalRing}) {
    CHECK_NEAR(cost(CollectiveKind::kAllReduce, 1 << 20, groups, 4, method).link_bytes, 1.5 * bytes,
               1);
    CHECK_NEAR(cost(CollectiveKind::kAllGather, 1 << 20, groups, 4, method).link_bytes,
               0.75 * bytes, 1);
  }
  CHECK_NEAR(cost(CollectiveKind::kAllReduce, 1 << 20, groups, 4, Method::kBroadcast).link_bytes,
             3 * bytes, 1);
}

TEST(two_directions_take_half_the_time_of_one) {
  const Groups groups = CommGroup().members(8);
  const auto time = [&](Method m) {
    return cost(CollectiveKind::kAllReduce, 1 << 24, groups, 8, m).link_cycles;
  };
  CHECK_NEAR(time(Method::kClockwiseRing) / time(Method::kBidirectionalRingPair), 2, 0.05);
  CHECK_EQ(time(Method::kClockwiseRing), time(Method::kAnticlockwiseRing));
  CHECK(time(Method::kMeetInMiddleRing) > time(Method::kBidirectionalRingPair));
}

TEST(auto_broadcasts_what_is_small_and_never_costs_more) {
  const Groups groups = CommGroup().members(8);
  Method chosen = Method::kAuto;
  cost(CollectiveKind::kAllReduce, 16, groups, 8, Method::kAuto, &chosen);
  CHECK(chosen == Method::kBroadcast);  // 8 * 64 bytes <= 2048
  cost(CollectiveKind::kAllReduce, 1 << 10, groups, 8, Method::kAuto, &chosen);
  CHECK(chosen == Method::kMeetInMiddleRing);  // fewer steps
  cost(CollectiveKind::kAllReduce, 1 << 24, groups, 8, Method::kAuto, &chosen);
  CHECK(chosen == Method::kBidirectionalRingPair);  // most bandwidth
  for (std::uint64_t n = 1 << 10; n < 1 << 22; n *= 4) {
    const double best = cost(CollectiveKind::kAllReduce, n, groups, 8).cycles();
    for (const auto method : kMethods) {
      if (method == Method::kBroadcast || method == Method::kAuto) continue;
      CHECK(best <= cost(CollectiveKind::kAllReduce, n, groups, 8, method).cycles());
    }
  }
}

TEST(the_pair_is_twice_as_wide_as_the_rungs_are_apart) {
  // poplibs_test/Util.cpp: 4 links within a pair, 2 to the next rung.
  const auto& machine = ipujax::engine::machineByName("gc200");
  ipujax::engine::LinkLoads pair(4, machine);
  pair.send(0, 1, 1e9);
  ipujax::engine::LinkLoads apart(4, machine);
  apart.send(0, 2, 1e9);
  CHECK_NEAR(apart.seconds() / pair.seconds(), 2, 1e-12);
  CHECK_NEAR(1e9 / apart.seconds() / 1e9, 29.2, 0.1);  // GB/s
  // Both directions at once take no longer than one.
  apart.send(2, 0, 1e9);
  CHECK_NEAR(apart.seconds() / pair.seconds(), 2, 1e-12);
}

TEST(groups_that_share_links_wait_for_each_other) {
  // Strided groups of a ladder of 16 cross the same rungs; consecutive ones do not.
  const auto near = CommGroup(CommGroupType::CONSECUTIVE, 4).members(16);
  const auto far = CommGroup(CommGroupType::ORTHOGONAL, 4).members(16);
  const double a = cost(CollectiveKind::kAllReduce, 1 << 22, near, 16).link_cycles;
  const double b = cost(CollectiveKind::kAllReduce, 1 << 22, far, 16).link_cycles;
  CHECK(b > 1.5 * a);
}

TEST(racks_are_joined_by_gateways) {
  ipujax::engine::LinkLoads loads(128, ipujax::engine::machineByName("gc200"));
  loads.send(3, 67, 25e9);  // same place in the next rack: 25 GB/s a machine
  CHECK_NEAR(loads.seconds(), 1, 1e-9);
}

TEST(all_reduce_fits_into_published_steps) {
  // ResNet-50 on GC200, MLPerf training v1.1: steps of 35.55 ms on 64 replicas (3 micro-batches)
  // and 108.32 ms on 16 (10) leave 4.4 ms for all-reduce of 51 MB in half, optimizer and host;
  // 28.73 ms on 128 (2), in two racks, leave 7.9 ms. The optimizer takes part of both.
  const auto milliseconds = [](unsigned replicas) {
    const auto target = poplar::Target::createIPUTarget(1, "gc200");
    const Groups groups = CommGroup().members(replicas);
    const auto now = gcl::costOf(
        target, {CollectiveKind::kAllReduce, poplar::HALF, 25'500'000, groups, replicas}, {});
    return now.cycles() / target.getTileClockFrequency() * 1e3;
  };
  CHECK(milliseconds(16) > 1 && milliseconds(16) < 4.4);
  CHECK(milliseconds(64) > 1 && milliseconds(64) < 4.4);
  const double second_rack = milliseconds(128) - milliseconds(64);
  CHECK(second_rack > 1.5 && second_rack < 3.5);
}

TEST(a_replica_alone_has_no_links) {
  const auto alone = cost(CollectiveKind::kAllReduce, 1 << 20, CommGroup().members(1), 1);
  CHECK_EQ(alone.cycles(), 0.0);
  CHECK_EQ(alone.link_bytes, 0.0);
}

TEST(replicas_of_more_ipus_have_more_links) {
  const Groups groups = CommGroup().members(4);
  const double one = cost(CollectiveKind::kAllReduce, 1 << 24, groups, 4).link_cycles;
  const double four =
      cost(CollectiveKind::kAllReduce, 1 << 24, groups, 4, Method::kAuto, nullptr, 4).link_cycles;
  CHECK(four < one);
}

TEST(quad_needs_an_even_ring) {
  const auto bad = [] {
    return cost(CollectiveKind::kAllReduce, 64, CommGroup().members(3), 3,
                Method::kQuadDirectionalRing);
  };
  CHECK_THROWS(bad(), "even size of at least 4");
}
