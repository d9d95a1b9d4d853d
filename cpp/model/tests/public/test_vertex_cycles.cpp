#include <popops/ExprOpUtils.hpp>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "OneVertex.hpp"

/// The cost of popops vertices, by differences that PopLibs' estimators give.
using namespace poplar;
using poputil::templateVertex;

namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<unsigned>;
constexpr std::uint64_t kWorkers = 6;  ///< a vertex gets one of six turns of its tile

}  // namespace

TEST(heaps_cost_their_keys_and_levels) {
  const auto cycles = [](unsigned n, bool has_values) {
    OneVertex f(has_values ? templateVertex("popops::HeapSortVertexKV", FLOAT, FLOAT)
                           : templateVertex("popops::HeapSortVertex", FLOAT));
    f.graph.connect(f.v[has_values ? "key" : "out"], f.onTile<float>({n}, Floats(n)));
    if (has_values) f.graph.connect(f.v["value"], f.onTile<float>({n}, Floats(n)));
    return f.cycles();
  };
  const std::uint64_t steps = (19 * 32 * 5 + 6 * 32) - (19 * 8 * 3 + 6 * 8);
  CHECK_EQ(cycles(32, false) - cycles(8, false), kWorkers * 8 * steps);
  CHECK_EQ(cycles(32, true) - cycles(8, true), kWorkers * 16 * steps);
}

TEST(rows_cost_their_look_ups) {
  const auto cycles = [](unsigned rows, Type type) {
    OneVertex f(templateVertex("popops::SelectFromIntervals", type));
    f.graph.connect(f.v["params"], f.onTile<float>({1, rows}, Floats(rows), type));
    f.graph.connect(f.v["indices"], f.onTile<unsigned>({1, rows}, Numbers(rows)));
    f.graph.connect(f.v["output"], f.onTile<float>({1, rows}, Floats(rows), type));
    f.graph.setInitialValue<unsigned>(f.v["rowsStart"], Numbers(rows));
    f.graph.setInitialValue<unsigned>(f.v["firstStartCol"], Numbers{0});
    f.graph.setInitialValue<unsigned>(f.v["lastEndCol"], Numbers{1});
    f.graph.setInitialValue<unsigned>(f.v["rowCounts"], Numbers{rows});
    f.graph.setInitialValue(f.v["paramsWidth"], 1);
    return f.cycles();
  };
  CHECK_EQ(cycles(20, FLOAT) - cycles(4, FLOAT), kWorkers * 8 * 16);
  CHECK_EQ(cycles(20, HALF) - cycles(4, HALF), kWorkers * 12 * 16);
}

TEST(transposes_cost_vectors_where_both_sides_are_whole_ones) {
  const auto cycles = [](unsigned matrices, unsigned rows, unsigned columns, Type type) {
    OneVertex f(templateVertex("popops::Transpose2D", type));
    const unsigned n = rows * columns;
    f.graph.connect(f.v["src"], f.onTile<float>({matrices, n}, Floats(matrices * n), type));
    f.graph.connect(f.v["dst"], f.onTile<float>({matrices, n}, Floats(matrices * n), type));
    f.graph.setInitialValue(f.v["numSrcRows"], rows);
    f.graph.setInitialValue(f.v["numSrcColumns"], columns);
    return f.cycles();
  };
  const auto of_one = [&](unsigned rows, unsigned columns, Type type) {
    return cycles(3, rows, columns, type) - cycles(2, rows, columns, type);
  };
  CHECK_EQ(of_one(4, 6, FLOAT), kWorkers * (11 + 2 * (6 + 3 * 2)));
  CHECK_EQ(of_one(4, 5, FLOAT), kWorkers * (8 + 5 * (5 + 4 * 4 / 2)));
  CHECK_EQ(of_one(8, 12, HALF), kWorkers * (12 + 2 * (15 + 4)));
  CHECK_EQ(of_one(4, 4, HALF), kWorkers * 15);
  CHECK_EQ(of_one(8, 4, HALF), kWorkers * (17 + 20));
  CHECK_EQ(of_one(3, 4, HALF), kWorkers * (8 + 4 * (5 + 3 * 5 / 2)));
}

TEST(blocks_of_a_vector_cost_their_columns) {
  const auto cycles = [](unsigned blocks, Type type) {
    constexpr unsigned kSize = 8;
    OneVertex f(templateVertex("popops::BroadcastVectorInner2DInPlace",
                               popops::expr::BinaryOpType::ADD, type));
    const unsigned n = blocks * kSize;
    f.graph.connect(f.v["data"], f.onTile<float>({1, n}, Floats(n), type));
    f.graph.connect(f.v["B"], f.onTile<float>({1, kSize}, Floats(kSize), type));
    const std::vector<unsigned short> list = {0, kSize, static_cast<unsigned short>(blocks)};
    f.graph.connect(f.v["workList"], f.onTile<unsigned short>({3}, list, UNSIGNED_SHORT));
    return f.cycles();
  };
  CHECK_EQ(cycles(5, FLOAT) - cycles(2, FLOAT), kWorkers * 8 * 2 * 3);
  CHECK_EQ(cycles(5, HALF) - cycles(2, HALF), kWorkers * 2 * 3);
}

TEST(compared_elements_cost_their_share) {
  const auto cycles = [](unsigned n) {
    OneVertex f(templateVertex("popops::CompareAndSwapAtDistanceKeyVal", FLOAT, UNSIGNED_INT));
    f.graph.connect(f.v["keys"], f.onTile<float>({n}, Floats(n)));
    f.graph.connect(f.v["values"], f.onTile<unsigned>({n}, Numbers(n)));
    const auto half = static_cast<unsigned short>(n / 2);
    f.graph.connect(f.v["worklists"], f.onTile<unsigned short>(
                                          {1, 7}, {0, 0, 1, 0, half, half, half}, UNSIGNED_SHORT));
    f.graph.setInitialValue(f.v["distanceToChangeOrder"], n);
    return f.cycles();
  };
  CHECK_EQ(cycles(40) - cycles(8), kWorkers * 11 * 16);
}
