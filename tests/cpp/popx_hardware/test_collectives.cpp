#include <random>
#include <sstream>

#include "Check.hpp"
#include "gcl/OnReplicas.hpp"
#include "gcl/internal/ReplicaGroups.hpp"
#include "popx/ReplicaGroups.hpp"

// Collectives of popx/hardware against the steps of the fast build, bit by bit, on the same data.

using gcl::CollectiveOperator;
using poplar::Tensor;
using Groups = popx::ReplicaGroups;

namespace {

constexpr unsigned kReplicas = 6;

/// Groups that a gcl::CommGroup expresses, and the same in another order, of several sizes.
const Groups kEqual[] = {{{0, 1, 2, 3, 4, 5}},          {{5, 3, 1, 0, 2, 4}},
                         {{0, 1, 2}, {3, 4, 5}},        {{0, 2, 4}, {1, 3, 5}},
                         {{5, 0}, {3, 1}, {2, 4}},      {{4, 0, 2}, {5, 3, 1}},
                         {{0}, {1}, {2}, {3}, {4}, {5}}};
const Groups kUneven[] = {{{3, 0, 5}, {4}, {2, 1}}, {{1, 2, 3, 4}, {5, 0}}};

struct Pair {
  OnReplicas d;
  std::vector<std::string> names;

  explicit Pair(unsigned ipus = 1) : d(kReplicas, 16, ipus) {}

  /// Random numbers, different on each replica.
  Tensor input(poplar::Type type, const std::vector<std::size_t>& shape) {
    std::size_t n = 1;
    for (const auto size : shape) n *= size;
    std::mt19937 random(static_cast<unsigned>(n));
    if (type == poplar::FLOAT) return numbers<float>(type, shape, n, random);
    if (type == poplar::HALF) {
      std::vector<std::vector<std::uint16_t>> values(kReplicas);
      for (auto& array : values)
        for (std::size_t i = 0; i < n; ++i)
          array.push_back(static_cast<std::uint16_t>(random() % 0x8000 / 2 + 0x1400));
      return d.input<std::uint16_t>(type, shape, values);
    }
    if (type == poplar::BOOL) return numbers<std::uint8_t>(type, shape, n, random, 2);
    if (type == poplar::SHORT) return numbers<std::int16_t>(type, shape, n, random);
    return numbers<int>(type, shape, n, random);
  }

  template <class T>
  Tensor numbers(poplar::Type type, const std::vector<std::size_t>& shape, std::size_t n,
                 std::mt19937& random, unsigned below = 60000) {
    std::vector<std::vector<T>> values(kReplicas);
    for (auto& array : values) {
      for (std::size_t i = 0; i < n; ++i) {
        const unsigned x = random() % below;
        if constexpr (std::is_floating_point_v<T>)
          array.push_back((static_cast<T>(x) - T(30000)) / T(777));
        else
          array.push_back(static_cast<T>(x));
      }
    }
    return d.input<T>(type, shape, values);
  }

  void add(const std::string& name, const Tensor& fast, const Tensor& hardware) {
    CHECK_EQ(fast.shapeToString(), hardware.shapeToString());
    CHECK(fast.elementType() == hardware.elementType());
    names.push_back(name);
    d.output(fast);
    d.output(hardware);
  }

  void check() {
    d.run();
    for (std::size_t i = 0; i < names.size(); ++i)
      for (unsigned r = 0; r < kReplicas; ++r)
        if (d.outputs[2 * i][r] != d.outputs[2 * i + 1][r])
          check::fail(__FILE__, __LINE__, names[i], " on replica ", r, ": other bytes");
  }
};

bool hasMeaning(CollectiveOperator op, poplar::Type type) {
  const bool real = type == poplar::FLOAT || type == poplar::HALF;
  const bool logical =
      op == CollectiveOperator::LOGICAL_AND || op == CollectiveOperator::LOGICAL_OR;
  if (type == poplar::BOOL) return logical || op == CollectiveOperator::MAX;
  return real ? !logical : op != CollectiveOperator::MEAN;
}

void reduces(poplar::Type type, const Groups& groups, bool scatters) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{37}}) {
    Pair pair;
    const Tensor t = pair.input(type, {n});
    for (int op = 0; op <= static_cast<int>(CollectiveOperator::LOCAL); ++op) {
      const auto kind = static_cast<CollectiveOperator>(op);
      if (!hasMeaning(kind, type)) continue;
      std::ostringstream name;
      name << kind << " of " << n << " " << type.toString();
      pair.add("all " + name.str(),
               gcl::groups::allReduce(pair.d.graph, {t}, kind, groups, pair.d.prog)[0],
               popx::allReduce(pair.d.graph, {t}, kind, groups, pair.d.prog)[0]);
      if (!scatters) continue;
      pair.add("scattered " + name.str(),
               gcl::groups::reduceScatter(pair.d.graph, {t}, kind, groups, pair.d.prog)[0],
               popx::reduceScatter(pair.d.graph, {t}, kind, groups, pair.d.prog)[0]);
    }
    pair.check();
  }
}

}  // namespace

TEST(reductions_of_groups) {
  for (const auto type : {poplar::FLOAT, poplar::HALF, poplar::INT, poplar::SHORT, poplar::BOOL}) {
    for (const Groups& groups : kEqual) reduces(type, groups, true);
    for (const Groups& groups : kUneven) reduces(type, groups, false);
  }
}

TEST(parts_are_the_same_whatever_ipus_the_data_is_on) {
  for (const Groups& groups : kEqual) {
    Pair pair(2);
    const Tensor t = pair.input(poplar::FLOAT, {37});  // of 32 tiles on two IPUs
    for (const auto op : {CollectiveOperator::ADD, CollectiveOperator::MUL})
      pair.add("scattered",
               gcl::groups::reduceScatter(pair.d.graph, {t}, op, groups, pair.d.prog)[0],
               popx::reduceScatter(pair.d.graph, {t}, op, groups, pair.d.prog)[0]);
    pair.check();
  }
}

TEST(gathers_and_exchanges) {
  for (const auto type : {poplar::FLOAT, poplar::HALF, poplar::BOOL}) {
    for (const Groups& groups : kEqual) {
      Pair pair;
      auto& [d, names] = pair;
      const std::size_t p = groups[0].size();
      const Tensor t = pair.input(type, {p, 2, 3});
      const auto like = [&](const std::vector<std::size_t>& shape) {
        return d.graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR);
      };
      const Tensor all = like({p, p, 2, 3}), all_too = like({p, p, 3, 2}).dimShuffle({0, 1, 3, 2});
      gcl::groups::allGatherToDestination(d.graph, t, all, groups, d.prog);
      popx::allGatherToDestination(d.graph, t, all_too, groups, d.prog);
      pair.add("gathered", all, all_too);
      const Tensor got = like({p, 2, 3}), got_too = like({2, p, 3}).dimShuffle({1, 0, 2});
      gcl::groups::allToAllToDestination(d.graph, t, got, groups, d.prog);
      popx::allToAllToDestination(d.graph, t, got_too, groups, d.prog);
      pair.add("exchanged", got, got_too);
      pair.check();
    }
  }
}

TEST(broadcasts_and_permutations) {
  Pair pair;
  auto& [d, names] = pair;
  const Tensor t = pair.input(poplar::FLOAT, {5});
  const std::pair<Groups, unsigned> roots[] = {{{{3, 1, 2}}, 0},
                                               {{{0, 1}, {2, 3}, {4, 5}}, 1},
                                               {{{5, 3, 1, 0, 2, 4}}, 4},
                                               {{{0, 4, 1}, {2, 5}}, 1},
                                               {{{4}}, 0}};
  for (const auto& [groups, root] : roots)
    pair.add("broadcast", gcl::groups::broadcast(d.graph, t, root, groups, d.prog),
             popx::broadcast(d.graph, t, root, groups, d.prog));
  const std::vector<std::pair<unsigned, unsigned>> sent[] = {
      {{0, 1}, {1, 2}, {2, 3}},
      {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}},
      {{2, 2}, {2, 0}, {2, 4}, {5, 1}},
      {}};
  for (const auto& pairs : sent)
    pair.add("permuted", gcl::groups::collectivePermute(d.graph, t, pairs, d.prog),
             popx::collectivePermute(d.graph, t, pairs, d.prog));
  pair.check();
}

TEST(empty_arrays) {
  Pair pair;
  auto& [d, names] = pair;
  const Tensor t = pair.input(poplar::FLOAT, {2, 0});
  const Groups mixed = {{5, 0}, {3, 1}, {2, 4}};
  CHECK_EQ(popx::allReduce(d.graph, {t}, CollectiveOperator::ADD, mixed, d.prog)[0].numElements(),
           0u);
  CHECK_EQ(popx::allToAll(d.graph, t, mixed, d.prog).numElements(), 0u);
  CHECK_EQ(popx::broadcast(d.graph, t, 0, {{1, 2}}, d.prog).numElements(), 0u);
  CHECK_EQ(popx::collectivePermute(d.graph, t, {{0, 1}}, d.prog).numElements(), 0u);
}

TEST(what_collectives_refuse) {
  OnReplicas d(4, 4);
  const Tensor t = d.graph.addVariable(poplar::FLOAT, {4}, poplar::VariableMappingMethod::LINEAR);
  const auto add = CollectiveOperator::ADD;
  CHECK_THROWS(popx::allReduce(d.graph, {t}, add, {{0, 1}, {1, 2, 3}}, d.prog),
               "name each of the 4 replicas once; got {{0, 1}, {1, 2, 3}}");
  CHECK_THROWS(popx::reduceScatter(d.graph, {t}, add, {{0}, {1, 2, 3}}, d.prog), "all of one size");
  CHECK_THROWS(
      popx::allReduce(d.graph, {t}, CollectiveOperator::LOGICAL_OR, {{1, 0}, {2, 3}}, d.prog),
      "an operator that has a meaning for the type; got LOGICAL_OR of float");
  CHECK_THROWS(popx::allToAll(d.graph, t, {{1, 0}, {3, 2}}, d.prog), "the groups' size 2");
  CHECK_THROWS(popx::broadcast(d.graph, t, 2, {{1, 0}}, d.prog), "a root below the size");
  CHECK_THROWS(popx::collectivePermute(d.graph, t, {{0, 1}, {2, 1}}, d.prog), "each target once");
  CHECK_THROWS(popx::allGatherToDestination(d.graph, t, t, {{0, 1, 2, 3}}, d.prog),
               "a destination of float {4,4}");
}
