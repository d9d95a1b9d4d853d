// All-reduce and reduce-scatter with every operator, type and group and some odd sizes, against
// plain trees over the members.
#include <cmath>
#include <random>
#include <sstream>

#include "Check.hpp"
#include "StepDeclared.hpp"
#include "engine/Half.hpp"
#include "gcl/Collectives.hpp"
#include "gcl/OnReplicas.hpp"
#include "popx/ReplicaGroups.hpp"
#include "popx/Type.hpp"

using gcl::CollectiveOperator;
using gcl::CommGroup;
using gcl::CommGroupType;
using poplar::Tensor;

namespace {

constexpr CollectiveOperator kOperators[] = {
    CollectiveOperator::ADD,        CollectiveOperator::MEAN,       CollectiveOperator::MUL,
    CollectiveOperator::MIN,        CollectiveOperator::MAX,        CollectiveOperator::LOGICAL_AND,
    CollectiveOperator::LOGICAL_OR, CollectiveOperator::SQUARE_ADD, CollectiveOperator::LOCAL};

bool isLogical(CollectiveOperator op) {
  return op == CollectiveOperator::LOGICAL_AND || op == CollectiveOperator::LOGICAL_OR;
}

/// One step of the plain loop; integers wrap.
template <class T>
T combine(CollectiveOperator op, T a, T b) {
  const auto wrap = [](auto f, T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(f(static_cast<std::uint64_t>(static_cast<U>(x)),
                              static_cast<std::uint64_t>(static_cast<U>(y))));
    } else {
      return static_cast<T>(f(x, y));
    }
  };
  switch (op) {
    case CollectiveOperator::MUL:
      return wrap([](auto x, auto y) { return x * y; }, a, b);
    case CollectiveOperator::MIN:
      return a < b || a != a ? a : b;
    case CollectiveOperator::MAX:
      return a > b || a != a ? a : b;
    case CollectiveOperator::LOGICAL_AND:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(a & b);
      return a;
    case CollectiveOperator::LOGICAL_OR:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(a | b);
      return a;
    default:
      return wrap([](auto x, auto y) { return x + y; }, a, b);
  }
}

template <class T>
T first(CollectiveOperator op, T a) {
  return op == CollectiveOperator::SQUARE_ADD ? combine(CollectiveOperator::MUL, a, a) : a;
}

template <class T>
using Arrays = std::vector<std::vector<T>>;

/// Element i of members [begin, end) of a group, split at the largest power of two below their
/// number.
template <class T>
T tree(CollectiveOperator op, const Arrays<T>& values, const std::vector<unsigned>& group,
       std::size_t begin, std::size_t end, std::size_t i) {
  if (end - begin == 1) return first(op, values[group[begin]][i]);
  std::size_t left = 1;
  while (2 * left < end - begin) left *= 2;
  return combine(op, tree(op, values, group, begin, begin + left, i),
                 tree(op, values, group, begin + left, end, i));
}

/// The expected result of replica r, whose group is `group`.
template <class T>
std::vector<T> expected(CollectiveOperator op, const Arrays<T>& values,
                        const std::vector<unsigned>& group, unsigned r) {
  if (op == CollectiveOperator::LOCAL) return values[r];
  std::vector<T> result(values[r].size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    T acc = tree(op, values, group, 0, group.size(), i);
    if (op == CollectiveOperator::MEAN) acc = static_cast<T>(acc / static_cast<T>(group.size()));
    result[i] = acc;
  }
  return result;
}

template <class T>
Arrays<T> randomArrays(unsigned replicas, std::size_t n, bool one_bit = false) {
  std::mt19937 random(static_cast<unsigned>(replicas * 1000 + n));
  Arrays<T> values(replicas, std::vector<T>(n));
  for (auto& array : values) {
    for (T& v : array) {
      const auto bits = random();
      if constexpr (std::is_floating_point_v<T>) {
        v = static_cast<T>(static_cast<double>(bits) / 4e9 * 3 - 1.5);
      } else {
        v = static_cast<T>(one_bit ? bits % 2 : bits);
      }
    }
  }
  return values;
}

template <class T>
void same(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  CHECK_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0)
      check::fail(__FILE__, __LINE__, what, " at ", i, ": ", +got[i], " instead of ", +want[i]);
  }
}

template <class T>
void reducesAll(poplar::Type type, bool floating, bool boolean = false) {
  const popx::ReplicaGroups group_sets[] = {CommGroup().members(6),
                                            CommGroup(CommGroupType::CONSECUTIVE, 3).members(6),
                                            CommGroup(CommGroupType::ORTHOGONAL, 2).members(6),
                                            {{5, 0}, {3, 1}, {2, 4}},
                                            CommGroup(CommGroupType::NONE, 1).members(6)};
  for (const std::size_t n : {std::size_t{1}, std::size_t{37}, std::size_t{4099}}) {
    const Arrays<T> values = randomArrays<T>(6, n, boolean);
    for (const auto& groups : group_sets) {
      OnReplicas d(6, 16);
      const Tensor t = d.input<T>(type, {n}, values);
      std::vector<std::pair<CollectiveOperator, bool>> made;
      for (const CollectiveOperator op : kOperators) {
        if (isLogical(op) && floating) continue;
        if (op == CollectiveOperator::MEAN && !floating) continue;
        if (boolean && !isLogical(op) && op != CollectiveOperator::MAX) continue;
        d.output(popx::allReduce(d.graph, {t}, op, groups, d.prog)[0]);
        d.output(popx::reduceScatter(d.graph, {t}, op, groups, d.prog)[0]);
        made.emplace_back(op, true);
      }
      d.run();
      for (std::size_t k = 0; k < made.size(); ++k) {
        for (const auto& group : groups) {
          for (std::size_t m = 0; m < group.size(); ++m) {
            std::ostringstream what;
            what << made[k].first << " " << type << " n=" << n << " replica " << group[m];
            auto want = expected(made[k].first, values, group, group[m]);
            same(d.result<T>(2 * k, group[m]), want, what.str());
            const std::size_t share = (n + group.size() - 1) / group.size();
            want.resize(share * group.size(), T(0));
            const std::vector<T> part(want.begin() + static_cast<std::ptrdiff_t>(m * share),
                                      want.begin() + static_cast<std::ptrdiff_t>((m + 1) * share));
            same(d.result<T>(2 * k + 1, group[m]), part, "scattered " + what.str());
          }
        }
      }
    }
  }
}

}  // namespace

TEST(all_reduce_of_float) { reducesAll<float>(poplar::FLOAT, true); }
TEST(all_reduce_of_double) { reducesAll<double>(popx::DOUBLE, true); }
TEST(all_reduce_of_bool) { reducesAll<std::uint8_t>(poplar::BOOL, false, true); }
TEST(all_reduce_of_int8) { reducesAll<std::int8_t>(poplar::SIGNED_CHAR, false); }
TEST(all_reduce_of_uint8) { reducesAll<std::uint8_t>(poplar::UNSIGNED_CHAR, false); }
TEST(all_reduce_of_int16) { reducesAll<std::int16_t>(poplar::SHORT, false); }
TEST(all_reduce_of_uint16) { reducesAll<std::uint16_t>(poplar::UNSIGNED_SHORT, false); }
TEST(all_reduce_of_int32) { reducesAll<std::int32_t>(poplar::INT, false); }
TEST(all_reduce_of_uint32) { reducesAll<std::uint32_t>(poplar::UNSIGNED_INT, false); }
TEST(all_reduce_of_int64) { reducesAll<std::int64_t>(poplar::LONGLONG, false); }
TEST(all_reduce_of_uint64) { reducesAll<std::uint64_t>(poplar::UNSIGNED_LONGLONG, false); }

TEST(half_sums_are_rounded_once) {
  using ipujax::engine::floatToHalf;
  using ipujax::engine::halfToFloat;
  // 2048 + 1 is 2048 in half, so rounding after each step would lose all ones.
  const std::vector<float> each{2048, 1, 1, 1, 1, 1, 1, 1, 1};
  Arrays<std::uint16_t> values;
  for (const float v : each) values.push_back(std::vector<std::uint16_t>(21, floatToHalf(v)));
  OnReplicas d(9, 4);
  const Tensor t = d.input<std::uint16_t>(poplar::HALF, {3, 7}, values);
  d.output(gcl::allReduceCrossReplica(d.graph, t, CollectiveOperator::ADD, d.prog));
  d.output(gcl::allReduceCrossReplica(d.graph, t, CollectiveOperator::MEAN, d.prog));
  d.output(gcl::allReduceCrossReplica(d.graph, t, CollectiveOperator::MAX, d.prog));
  d.run();
  for (unsigned r = 0; r < 9; ++r) {
    for (const auto h : d.result<std::uint16_t>(0, r)) CHECK_EQ(halfToFloat(h), 2056.0F);
    for (const auto h : d.result<std::uint16_t>(1, r)) CHECK_EQ(h, floatToHalf(2056.0F / 9.0F));
    for (const auto h : d.result<std::uint16_t>(2, r)) CHECK_EQ(halfToFloat(h), 2048.0F);
  }
}

TEST(in_place_gives_the_same_bits_on_every_replica) {
  const std::size_t n = 70001;  // many blocks, on several threads
  const auto values = randomArrays<float>(4, n);
  const std::vector<unsigned> all{0, 1, 2, 3};
  for (int run = 0; run < 5; ++run) {
    OnReplicas d(4);
    const Tensor t = d.input<float>(poplar::FLOAT, {n}, values);
    gcl::allReduceInPlaceCrossReplica(d.graph, t, CollectiveOperator::ADD, d.prog);
    d.output(t);
    d.run();
    for (unsigned r = 0; r < 4; ++r)
      same(d.result<float>(0, r), expected(CollectiveOperator::ADD, values, all, r), "in place");
  }
}

TEST(in_place_of_a_view_leaves_the_rest_alone) {
  const auto values = randomArrays<float>(2, 24);
  OnReplicas d(2, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {4, 6}, values);
  gcl::allReduceInPlaceCrossReplica(d.graph, t.slice(1, 3, 1), CollectiveOperator::MAX, d.prog);
  d.output(t);
  d.run();
  for (unsigned r = 0; r < 2; ++r) {
    const auto got = d.result<float>(0, r);
    for (std::size_t i = 0; i < 24; ++i) {
      const bool inside = i % 6 == 1 || i % 6 == 2;
      CHECK_EQ(got[i], inside ? std::max(values[0][i], values[1][i]) : values[r][i]);
    }
  }
}

TEST(several_tensors_of_several_types_in_one_step) {
  const auto floats = randomArrays<float>(4, 10);
  const auto ints = randomArrays<std::int32_t>(4, 5000);
  const std::vector<unsigned> all{0, 1, 2, 3};
  OnReplicas d(4, 8);
  const Tensor a = d.input<float>(poplar::FLOAT, {10}, floats);
  const Tensor b = d.input<std::int32_t>(poplar::INT, {5000}, ints);
  const auto sums = gcl::allReduceCrossReplica(d.graph, std::vector<Tensor>{a, b},
                                               CollectiveOperator::ADD, d.prog);
  d.output(sums[0]);
  d.output(sums[1]);
  d.run();
  for (unsigned r = 0; r < 4; ++r) {
    same(d.result<float>(0, r), expected(CollectiveOperator::ADD, floats, all, r), "floats");
    same(d.result<std::int32_t>(1, r), expected(CollectiveOperator::ADD, ints, all, r), "ints");
  }
}

TEST(several_tensors_are_scattered_in_one_step) {
  const auto floats = randomArrays<float>(4, 10);
  const auto ints = randomArrays<std::int32_t>(4, 5000);
  const std::vector<unsigned> all{0, 1, 2, 3};
  OnReplicas d(4, 8);
  const Tensor a = d.input<float>(poplar::FLOAT, {10}, floats);
  const Tensor b = d.input<std::int32_t>(poplar::INT, {5000}, ints);
  const auto parts = gcl::reduceScatterCrossReplica(d.graph, std::vector<Tensor>{a, b},
                                                    CollectiveOperator::ADD, d.prog);
  d.output(parts[0]);
  d.output(parts[1]);
  d.run();
  for (unsigned r = 0; r < 4; ++r) {
    auto want = expected(CollectiveOperator::ADD, floats, all, r);
    want.resize(12);
    same(d.result<float>(0, r), {want.begin() + 3 * r, want.begin() + 3 * r + 3}, "floats");
    const auto sums = expected(CollectiveOperator::ADD, ints, all, r);
    same(d.result<std::int32_t>(1, r), {sums.begin() + 1250 * r, sums.begin() + 1250 * (r + 1)},
         "ints");
  }
}

TEST(results_are_written_to_destinations) {
  const auto xs = randomArrays<float>(4, 6);
  const auto ys = randomArrays<float>(4, 8);
  const std::vector<unsigned> all{0, 1, 2, 3};
  OnReplicas d(4, 8);
  const Tensor x = d.input<float>(poplar::FLOAT, {2, 3}, xs);
  const Tensor y = d.input<float>(poplar::FLOAT, {8}, ys);
  const auto place = [&](std::vector<std::size_t> shape) {
    return d.graph.addVariable(poplar::FLOAT, shape, poplar::VariableMappingMethod::LINEAR);
  };
  const auto op = CollectiveOperator::ADD;
  const std::vector<Tensor> datas{x, y};
  const std::vector<Tensor> sums{place({2, 3}), place({8})};
  const std::vector<Tensor> parts{place({2}), place({2, 1})};
  const std::vector<Tensor> whole{concat(place({4, 1, 3}), place({4, 1, 3}), 1), place({32})};
  gcl::allReduceToDestinationCrossReplica(d.graph, datas, sums, op, d.prog);
  gcl::reduceScatterToDestinationCrossReplica(d.graph, datas, parts, op, d.prog);
  gcl::allGatherToDestinationCrossReplica(d.graph, datas, whole, d.prog);
  for (const auto& results : {sums, parts, whole})
    for (const Tensor& result : results) d.output(result);
  d.run();
  for (unsigned r = 0; r < 4; ++r) {
    auto sum = expected(op, xs, all, r);
    same(d.result<float>(0, r), sum, "x");
    sum.resize(8);  // parts of two elements, with zeros at the end
    same(d.result<float>(2, r), {sum.begin() + 2 * r, sum.begin() + 2 * r + 2}, "part of x");
    sum = expected(op, ys, all, r);
    same(d.result<float>(1, r), sum, "y");
    same(d.result<float>(3, r), {sum.begin() + 2 * r, sum.begin() + 2 * r + 2}, "part of y");
    std::vector<float> all_x;
    std::vector<float> all_y;
    for (unsigned from = 0; from < 4; ++from) {
      all_x.insert(all_x.end(), xs[from].begin(), xs[from].end());
      all_y.insert(all_y.end(), ys[from].begin(), ys[from].end());
    }
    same(d.result<float>(4, r), all_x, "gathered x");
    same(d.result<float>(5, r), all_y, "gathered y");
  }
  CHECK_THROWS(gcl::allGatherToDestinationCrossReplica(d.graph, datas, {sums[0]}, d.prog),
               "one destination for each of the 2 tensors");
}

TEST(minimum_and_maximum_keep_nan) {
  const float nan = std::nanf("");
  OnReplicas d(3, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {2}, {{1, nan}, {nan, 2}, {3, 3}});
  d.output(gcl::allReduceCrossReplica(d.graph, t, CollectiveOperator::MIN, d.prog));
  d.output(gcl::allReduceCrossReplica(d.graph, t, CollectiveOperator::MAX, d.prog));
  d.run();
  for (std::size_t k = 0; k < 2; ++k) {
    for (const float v : d.result<float>(k, 1)) CHECK(std::isnan(v));
  }
}

TEST(bad_groups_and_operators_are_refused) {
  OnReplicas d(4, 4);
  const Tensor t = d.input<float>(poplar::FLOAT, {2}, Arrays<float>(4, std::vector<float>(2)));
  const auto reduce = [&](CollectiveOperator op, const CommGroup& group,
                          const poplar::OptionFlags& options = {}) {
    return gcl::allReduceCrossReplica(d.graph, t, op, d.prog, group, {}, options);
  };
  const CommGroup threes(CommGroupType::CONSECUTIVE, 3);
  CHECK_THROWS(reduce(CollectiveOperator::ADD, threes), "groups that divide the 4 replicas");
  CHECK_THROWS(reduce(CollectiveOperator::LOGICAL_AND, {}), "BOOL data");
  CHECK_THROWS(reduce(CollectiveOperator::ADD, {}, {{"method", "pigeon"}}), "clockwise_ring");
  CHECK_THROWS(reduce(CollectiveOperator::ADD, {}, {{"syncful.maxBroadcastSize", "-1"}}),
               "a number >= 0");
  CHECK_THROWS(reduce(CollectiveOperator::ADD, {}, {{"colour", "red"}}), "options it knows");
  CHECK_THROWS(popx::allReduce(d.graph, {t}, CollectiveOperator::ADD, {{0, 1}, {1, 2, 3}}, d.prog),
               "name each of the 4 replicas once");
  CHECK_THROWS(popx::allReduce(d.graph, {t}, CollectiveOperator::ADD, {{0, 1}}, d.prog),
               "name each of the 4 replicas once");
  CHECK_THROWS(popx::reduceScatter(d.graph, {t}, CollectiveOperator::ADD, {{0}, {1, 2, 3}}, d.prog),
               "all of one size");
}

TEST(more_replicas_than_ipus_are_refused) {
  const auto target = poplar::Target::createIPUTarget(6, "gc200");
  CHECK_THROWS(poplar::Graph(target, poplar::replication_factor(4)), "share evenly");
  const poplar::Graph graph(target, poplar::replication_factor(3));
  CHECK_EQ(graph.getReplicationFactor(), 3U);
  CHECK_EQ(graph.getTarget().getNumIPUs(), 2U);
}

TEST(steps_that_do_not_fit_are_refused) {
  using namespace ipujax::engine;
  StepDesc step;
  step.kernel = "gcl.reduce";
  step.attributes.set("op", std::int64_t{0}).set("scatter", std::int64_t{0});
  step.attributes.set("groups", Attributes::Integers{0, 1}).set("sizes", Attributes::Integers{2});
  CHECK_THROWS(check::declared(step, 2), "needs operands and groups");
  OperandDesc in;
  in.shape = {4};
  in.strides = {1};
  OperandDesc out = in;
  out.access = Access::kWrite;
  out.shape = {3};
  step.operands = {in, out};
  CHECK_THROWS(check::declared(step, 2), "kernel gcl.reduce needs operand 1 to");
  step.operands[1].shape = in.shape;
  check::declared(step, 2);
  const auto kernel = KernelRegistry::instance().make(step);
  const auto alone = [&] {
    RunContext context{ThreadPool::shared()};
    std::byte* const pointers[] = {nullptr, nullptr};
    kernel->run(context, pointers);
  };
  CHECK_THROWS(alone(), "needs 2 replicas; got a run with 1");
}

TEST(replicated_graphs_do_not_run_as_one) {
  OnReplicas d(2, 4);
  d.output(d.graph.addReplicationIndexConstant());
  d.options.signature.num_replicas = 1;
  CHECK_THROWS(d.run(), "graph's 2 replicas");
}
