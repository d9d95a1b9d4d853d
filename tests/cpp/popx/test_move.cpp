// Collectives that move data without combining it: gathers, exchanges, broadcasts, permutations,
// indices.
#include "Check.hpp"
#include "gcl/Collectives.hpp"
#include "gcl/OnReplicas.hpp"
#include "popx/ReplicaGroups.hpp"

using gcl::CommGroup;
using gcl::CommGroupType;
using poplar::Tensor;
using Floats = std::vector<float>;
using Shape = std::vector<std::size_t>;

namespace {

/// Replica r holds 100 r + 0, 1, 2 ...
std::vector<Floats> numbered(unsigned replicas, std::size_t n) {
  std::vector<Floats> values(replicas);
  for (unsigned r = 0; r < replicas; ++r) {
    for (std::size_t i = 0; i < n; ++i)
      values[r].push_back(100.0F * static_cast<float>(r) + static_cast<float>(i));
  }
  return values;
}

}  // namespace

TEST(the_index_is_the_replica_everywhere) {
  OnReplicas d(5, 4);
  d.output(d.graph.addReplicationIndexConstant());
  d.output(d.graph.addReplicationIndexConstant());
  d.run();
  for (unsigned r = 0; r < 5; ++r) {
    CHECK_EQ(d.result<unsigned>(0, r)[0], r);
    CHECK_EQ(d.result<unsigned>(1, r)[0], r);
  }
}

TEST(gather_of_groups) {
  const auto values = numbered(6, 5);
  OnReplicas d(6, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {5}, values);
  const CommGroup group(CommGroupType::ORTHOGONAL, 3);
  const Tensor all = gcl::allGatherCrossReplica(d.graph, t, d.prog, group);
  CHECK(all.shape() == (Shape{3, 5}));
  d.output(all);
  d.run();
  for (unsigned r = 0; r < 6; ++r) {
    const auto got = d.result<float>(0, r);
    for (std::size_t m = 0; m < 3; ++m) {
      for (std::size_t i = 0; i < 5; ++i) CHECK_EQ(got[m * 5 + i], values[r % 2 + 2 * m][i]);
    }
  }
}

TEST(gather_into_a_strided_destination) {
  // Along the second of two dimensions: row-major [2, member, 3].
  const auto values = numbered(4, 6);
  OnReplicas d(4, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {2, 3}, values);
  const Tensor out =
      d.graph.addVariable(poplar::FLOAT, {2, 4, 3}, poplar::VariableMappingMethod::LINEAR);
  popx::allGatherToDestination(d.graph, t, out.dimShuffle({1, 0, 2}), {{0, 1, 2, 3}}, d.prog);
  d.output(out);
  d.run();
  for (unsigned r = 0; r < 4; ++r) {
    const auto got = d.result<float>(0, r);
    for (std::size_t i = 0; i < 24; ++i) CHECK_EQ(got[i], values[i / 3 % 4][i / 12 * 3 + i % 3]);
  }
}

TEST(large_gather_on_threads) {
  const std::size_t n = 40000;
  const auto values = numbered(8, n);
  OnReplicas d(8);
  const Tensor t = d.input<float>(poplar::FLOAT, {n}, values);
  d.output(gcl::allGatherCrossReplica(d.graph, t, d.prog));
  d.run();
  for (unsigned r = 0; r < 8; ++r) {
    const auto got = d.result<float>(0, r);
    for (std::size_t i = 0; i < 8 * n; ++i) CHECK_EQ(got[i], values[i / n][i % n]);
  }
}

TEST(all_to_all_transposes_members_and_slices) {
  const auto values = numbered(6, 3 * 4);
  OnReplicas d(6, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {3, 4}, values);
  d.output(gcl::allToAllCrossReplica(d.graph, t, d.prog, CommGroup(CommGroupType::CONSECUTIVE, 3)));
  d.output(popx::allToAll(d.graph, t, {{4, 0, 2}, {5, 3, 1}}, d.prog));
  d.run();
  const std::vector<unsigned> mixed[] = {{4, 0, 2}, {5, 3, 1}};
  for (unsigned r = 0; r < 6; ++r) {
    const auto got = d.result<float>(0, r);
    for (std::size_t i = 0; i < 12; ++i)
      CHECK_EQ(got[i], values[r / 3 * 3 + i / 4][r % 3 * 4 + i % 4]);
  }
  for (const auto& group : mixed) {
    for (std::size_t j = 0; j < 3; ++j) {
      const auto got = d.result<float>(1, group[j]);
      for (std::size_t i = 0; i < 12; ++i) CHECK_EQ(got[i], values[group[i / 4]][j * 4 + i % 4]);
    }
  }
}

TEST(broadcast_from_a_member) {
  const auto values = numbered(6, 4);
  OnReplicas d(6, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {4}, values);
  d.output(
      gcl::broadcastCrossReplica(d.graph, t, d.prog, CommGroup(CommGroupType::CONSECUTIVE, 2), 1));
  d.output(popx::broadcast(d.graph, t, 0, {{3, 1, 2}}, d.prog));
  d.run();
  for (unsigned r = 0; r < 6; ++r) {
    CHECK(d.result<float>(0, r) == values[r / 2 * 2 + 1]);
    const bool named = r >= 1 && r <= 3;
    CHECK(d.result<float>(1, r) == (named ? values[3] : Floats(4)));
  }
}

TEST(permute_fills_who_receives_nothing_with_zeros) {
  const auto values = numbered(4, 3);
  OnReplicas d(4, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {3}, values);
  d.output(popx::collectivePermute(d.graph, t, {{0, 1}, {1, 2}, {2, 3}}, d.prog));
  d.run();
  CHECK(d.result<float>(0, 0) == Floats(3));
  for (unsigned r = 1; r < 4; ++r) CHECK(d.result<float>(0, r) == values[r - 1]);
  const auto twice = [&] { popx::collectivePermute(d.graph, t, {{0, 1}, {2, 1}}, d.prog); };
  CHECK_THROWS(twice(), "each target once");
}

TEST(cross_replica_copy_of_a_tensor_to_itself) {
  const auto values = numbered(4, 3);
  OnReplicas d(4, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {3}, values);
  d.prog.add(poplar::program::CrossReplicaCopy(t, t, {{0, 3}, {1, 2}, {2, 1}, {3, 0}}));
  d.output(t);
  d.run();
  for (unsigned r = 0; r < 4; ++r) CHECK(d.result<float>(0, r) == values[3 - r]);
  const auto partial = [&] { poplar::program::CrossReplicaCopy(t, t, {{0, 1}, {1, 0}}); };
  CHECK_THROWS(partial(), "each of the 4 replicas once");
}

TEST(groups_as_the_user_guide_has_them) {
  using Groups = std::vector<std::vector<unsigned>>;
  CHECK(CommGroup().members(4) == (Groups{{0, 1, 2, 3}}));
  CHECK(CommGroup(CommGroupType::CONSECUTIVE, 2).members(6) == (Groups{{0, 1}, {2, 3}, {4, 5}}));
  CHECK(CommGroup(CommGroupType::ORTHOGONAL, 2).members(6) == (Groups{{0, 3}, {1, 4}, {2, 5}}));
  CHECK(CommGroup(CommGroupType::ORTHOGONAL, 2, 2).members(8) ==
        (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  CHECK(CommGroup(CommGroupType::NONE, 0).members(2) == (Groups{{0}, {1}}));
  CHECK_THROWS(CommGroup(CommGroupType::ORTHOGONAL, 4).members(6), "divide the 6 replicas");
}
