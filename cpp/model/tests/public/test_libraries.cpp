#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/GraphFunction.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

std::vector<std::size_t> sizesOf(const std::vector<std::vector<Interval>>& parts) {
  std::vector<std::size_t> sizes;
  for (const auto& part : parts) sizes.push_back(poputil::intervalSequenceNumElements({part}));
  return sizes;
}

}  // namespace

TEST(regions_merge_and_split) {
  std::vector<Interval> regions{{0, 4}, {4, 10}, {12, 20}};
  poputil::mergeAdjacentRegions(regions);
  CHECK(regions == (std::vector<Interval>{{0, 10}, {12, 20}}));
  CHECK(sizesOf(poputil::splitRegions(regions, 2, 3)) == (std::vector<std::size_t>{6, 6, 6}));
  CHECK(sizesOf(poputil::splitRegions(regions, 4, 6, 8)) == (std::vector<std::size_t>{8, 10}));
  CHECK(sizesOf(poputil::splitRegions(regions, 1, 2, 0, 5)) ==
        (std::vector<std::size_t>{4, 5, 4, 5}));
  CHECK_EQ(poputil::splitRegions(regions, 1, 1, 0, 100, 3)[0].size(), 7u);
  const auto sequences = poputil::splitRegions({{{0, 3}, {8, 9}}, {{20, 24}}}, 1, 2);
  CHECK_EQ(sequences.size(), 2u);
  CHECK(sequences[0][0] == (std::vector<Interval>{{0, 3}, {8, 9}}));
  Fixture f;
  CHECK_EQ(poputil::splitRegionsBetweenWorkers(f.graph.getTarget(), regions, 1).size(), 6u);
  CHECK(poputil::balancedPartition(10, 4) == (std::vector<int>{2, 3, 2, 3}));
  CHECK(poputil::unflattenIndex<unsigned>({2, 3, 4}, 17) == (std::vector<unsigned>{1, 1, 1}));
  CHECK_EQ(poputil::flattenIndex<unsigned>({2, 3, 4}, {1, 1, 1}), 17u);
  CHECK(poputil::checkAccuracyWhenCast(f.graph.getTarget(), 0.5, FLOAT, HALF, 1e-6));
  CHECK(!poputil::checkAccuracyWhenCast(f.graph.getTarget(), 70000, FLOAT, HALF, 1e-2));
}

TEST(linear_mappings_have_an_offset_and_an_order) {
  Fixture f(4);
  Tensor t = f.graph.addVariable(FLOAT, {4}, "t");
  const auto tileOf = [&](std::size_t i) {
    const auto mapping = f.graph.getTileMapping(t.slice(i, i + 1));
    for (unsigned tile = 0; tile < mapping.size(); ++tile) {
      if (!mapping[tile].empty()) return tile;
    }
    return ~0u;
  };
  poputil::mapTensorLinearlyWithOffset(f.graph, t, 1, 1, 3);
  CHECK_EQ(tileOf(0), 3u);
  CHECK_EQ(tileOf(1), 0u);
  poputil::mapTensorLinearlyWithOffset(f.graph, t, 1, 1, 0, false);
  CHECK_EQ(tileOf(0), 3u);
  CHECK_EQ(tileOf(3), 0u);
  CHECK_EQ(poputil::getTileImbalance(f.graph, t), 0u);
  CHECK(poputil::dimIsSplitOverTiles(f.graph, t, 0));
  f.graph.setTileMapping(t, 2);
  CHECK_EQ(poputil::getTileImbalance(f.graph, t), 3u);
  CHECK(!poputil::dimIsSplitOverTiles(f.graph, t, 0));
}

TEST(clones_keep_their_place_on_another_ipu) {
  Fixture f(4, 2);
  Tensor t = f.graph.addVariable(FLOAT, {2, 3}, "t");
  f.graph.setTileMapping(t[0], 1);
  f.graph.setTileMapping(t[1], 2);
  Tensor there = poputil::cloneToIpu(f.graph, t, 1);
  CHECK_EQ(f.graph.getTileMapping(there)[5][0].size(), 3u);
  CHECK_THROWS(poputil::cloneToIpu(f.graph, t, 2), "below 2");
  CHECK(!poputil::dimIsSplitOverIPUs(f.graph, t, 0));
  CHECK(poputil::dimIsSplitOverIPUs(f.graph, concat(t, there), 0));
  Tensor operand = poputil::createBroadcastOperand(f.graph, t, HALF, 0);
  CHECK_EQ(f.graph.getTileMapping(operand)[2].size(), 1u);
  CHECK_EQ(poputil::cloneN(f.graph, t, 3).dim(0), 3u);
}

TEST(reductions_run_in_the_callers_compute_sets) {
  Fixture f;
  Tensor in = f.graph.addConstant<float>(FLOAT, {2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor sum = f.variable("sum", {2});
  Tensor most = f.variable("most", {3});
  std::vector<ComputeSet> sets;
  popops::reduceWithOutput(f.graph, in, sum, {1}, popops::Operation::ADD, sets, "sum");
  Tensor max = popops::reduce(f.graph, in, {0}, popops::Operation::MAX, sets, "max");
  Sequence prog;
  for (const auto& cs : sets) prog.add(Execute(cs));
  prog.add(Copy(max, most));
  std::vector<Tensor> many(1);
  popops::reduceMany(f.graph, {{in, {0, 1}, popops::Operation::MIN, "least"}}, many, prog);
  Tensor least = f.variable("least", {1});
  prog.add(Copy(many[0].expand({0}), least));
  Engine engine(f.graph, prog);
  engine.loadAndRun(f.device);
  CHECK(f.read(engine, "sum", 2) == (std::vector<float>{6, 15}));
  CHECK(f.read(engine, "most", 3) == (std::vector<float>{4, 5, 6}));
  CHECK_EQ(f.read(engine, "least", 1)[0], 1.0f);
}

TEST(loops_count_and_functions_have_outputs) {
  Fixture f;
  Tensor sum = f.variable("sum", {1}, UNSIGNED_INT);
  Tensor root = f.variable("root", {2});
  Tensor big = f.variable("big", {2}, BOOL);
  Tensor index = f.variable("index", {3}, INT);
  Tensor x = f.graph.addConstant<float>(FLOAT, {2}, {4, 9});
  Tensor limit = f.graph.addConstant(INT, {}, 12);
  Tensor rounds = f.variable("rounds", {1}, INT);
  Sequence prog;
  popops::zero(f.graph, std::vector<Tensor>{sum, rounds}, prog);
  prog.add(popops::countedLoop(f.graph, 2, 9, 3, [&](const Tensor& i) {
    Sequence body;
    popops::addInPlace(f.graph, sum, i, body);
    return body;
  }));
  Sequence body;
  popops::addInPlace(f.graph, rounds, 1, body);
  prog.add(popops::countedForLoop(f.graph, 0, limit, 4, body));
  popops::sqrtWithOutput(f.graph, x, root, prog);
  popops::gtWithOutput(f.graph, x, 5.0f, big, prog);
  popops::iota(f.graph, index, 5, prog);
  Tensor even = popops::nearbyint(f.graph, f.graph.addConstant(FLOAT, {1}, 2.5f), prog);
  Tensor nearest = f.variable("nearest", {1});
  prog.add(Copy(even, nearest));
  CHECK_THROWS(popops::countedLoop(f.graph, 3, 3, 1, [](const Tensor&) { return Sequence(); }),
               "begin < end");
  Engine engine(f.graph, prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read<unsigned>(engine, "sum", 1)[0], 2u + 5u + 8u);
  CHECK_EQ(f.read<int>(engine, "rounds", 1)[0], 3);
  CHECK(f.read(engine, "root", 2) == (std::vector<float>{2, 3}));
  CHECK_EQ(f.read<char>(engine, "big", 2)[0], 0);
  CHECK_EQ(f.read<char>(engine, "big", 2)[1], 1);
  CHECK_EQ(f.read<int>(engine, "index", 3)[2], 7);
  CHECK_EQ(f.read(engine, "nearest", 1)[0], 2.0f);
}

TEST(loops_count_down_and_below_zero) {
  Fixture f;
  Tensor rounds = f.variable("rounds", {2}, UNSIGNED_INT);
  Sequence prog;
  popops::zero(f.graph, rounds, prog);
  const auto loop = [&](unsigned i, Type type, int begin, int end, int step) {
    Tensor limit = f.graph.addConstant<int>(type, {1}, end);
    Sequence body;
    popops::addInPlace(f.graph, rounds.slice(i, i + 1), 1u, body);
    prog.add(popops::countedForLoop(f.graph, begin, limit, step, body));
  };
  loop(0, UNSIGNED_INT, 10, 0, -2);
  loop(1, INT, -3, -11, -1);
  Engine engine(f.graph, prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read<unsigned>(engine, "rounds", 2)[0], 5u);
  CHECK_EQ(f.read<unsigned>(engine, "rounds", 2)[1], 8u);
}

TEST(functions_of_the_graph_are_called_on_other_tensors) {
  for (const bool inlined : {false, true}) {
    Fixture f;
    Tensor a = f.graph.addConstant<float>(FLOAT, {2}, {1, 2});
    Tensor b = f.graph.addConstant<float>(FLOAT, {2}, {5, 6});
    Tensor total = f.variable("total", {2});
    f.graph.setInitialValue(total, 0.0f);
    poputil::graphfn::VoidFunction add(
        f.graph, {poputil::graphfn::input(a), poputil::graphfn::inout(total)},
        [&](std::vector<Tensor>& args, Sequence& prog) {
          popops::addInPlace(f.graph, args[1], args[0], prog);
        },
        inlined);
    poputil::graphfn::TensorFunction twice(
        f.graph, {poputil::graphfn::input(a)},
        [&](std::vector<Tensor>& args, Sequence& prog) {
          return popops::mul(f.graph, args[0], 2.0f, prog);
        },
        inlined);
    Sequence prog;
    std::vector<Tensor> first{a, total}, second{b, total}, only{b};
    add(first, prog);
    add(second, prog);
    Tensor doubled = twice(only, prog);
    Tensor seen = f.variable("seen", {2});
    prog.add(Copy(doubled, seen));
    CHECK_THROWS(add(only, prog), "2 arguments");
    Engine engine(f.graph, prog);
    engine.loadAndRun(f.device);
    CHECK(f.read(engine, "total", 2) == (std::vector<float>{6, 8}));
    CHECK(f.read(engine, "seen", 2) == (std::vector<float>{10, 12}));
  }
}

TEST(a_compute_set_of_vertices_also_runs_library_steps) {
  Fixture f;
  Tensor x = f.variable("x", {4});
  f.graph.setInitialValue(x, 3.0f);
  ComputeSet cs = f.graph.addComputeSet("clear");
  popops::zero(f.graph, x, {{{0, 1}}, {{2, 4}}}, cs);
  Engine engine(f.graph, Execute(cs));
  engine.loadAndRun(f.device);
  CHECK(f.read(engine, "x", 4) == (std::vector<float>{0, 3, 0, 0}));
}

TEST(ranks_and_shapes_are_matched) {
  Fixture f;
  Tensor a = f.variable("a", {3, 1, 2}), b = f.variable("b", {4, 2}), c = f.variable("c", {3});
  CHECK(poputil::canBroadcastToMatch(a, b));
  CHECK(!poputil::canBroadcastToMatch(a, c));
  poputil::expandToMatchRanks(a, b);
  CHECK(b.shape() == (std::vector<std::size_t>{1, 4, 2}));
  poputil::broadcastToMatch(a, b);
  CHECK(a.shape() == (std::vector<std::size_t>{3, 4, 2}));
}
