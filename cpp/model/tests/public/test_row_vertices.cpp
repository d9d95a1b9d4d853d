#include <cmath>
#include <popops/Cast.hpp>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "OneVertex.hpp"

/// The vertices of popops that select from rows and decrement them, and that sort, by name.
using namespace poplar;
using poputil::templateVertex;

namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<unsigned>;
constexpr unsigned kNone = 0xFFFFFFFFU;

/// Columns 1 to 3 of row 0, row 1, and columns 0 and 1 of row 2, of a matrix with four columns.
void connectInterval(OneVertex& f) {
  f.graph.setInitialValue<unsigned>(f.v["rowsStart"], Numbers{0, 3, 7});
  f.graph.setInitialValue(f.v["paramsWidth"], 4);
  f.graph.setInitialValue(f.v["firstStartCol"], 1);
  f.graph.setInitialValue(f.v["lastEndCol"], 2);
  f.graph.setInitialValue(f.v["rowCount"], 3);
}

const Floats kInterval = {1, 2, 3, 10, 11, 12, 13, 20, 21};

}  // namespace

TEST(an_element_of_each_row_of_an_interval) {
  for (const Numbers& columns : {Numbers{3, 2, 1}, Numbers{0, kNone, 3}}) {
    OneVertex f(templateVertex("popops::SelectFromInterval", FLOAT));
    connectInterval(f);
    const Tensor out = f.onTile<float>({3}, {-1, -1, -1});
    f.graph.connect(f.v["params"], f.onTile<float>({9}, kInterval));
    f.graph.connect(f.v["indices"], f.onTile<unsigned>({3}, columns));
    f.graph.connect(f.v["output"], out);
    CHECK(f.result<float>(out) == (columns[0] == 3 ? Floats{3, 12, 21} : Floats{0, 0, 0}));
  }
  OneVertex f(templateVertex("popops::SelectFromInterval", FLOAT));
  connectInterval(f);
  const Tensor out = f.onTile<float>({3}, {0, 0, 0});
  f.graph.connect(f.v["params"], f.onTile<float>({9}, kInterval));
  f.graph.connect(f.v["indices"], f.onTile<unsigned>({3}, {4, 0, 0}));
  f.graph.connect(f.v["output"], out);
  const Floats found = f.result<float>(out);
  CHECK(std::isnan(found[0]));
  CHECK_EQ(found[1], 10.0F);
  CHECK_EQ(found[2], 20.0F);
}

TEST(rows_of_an_interval_are_decremented) {
  OneVertex f(templateVertex("popops::UpdateIntervalDEC", FLOAT));
  connectInterval(f);
  const Tensor params = f.onTile<float>({9}, kInterval);
  f.graph.connect(f.v["params"], params);
  f.graph.connect(f.v["indices"], f.onTile<unsigned>({3}, {1, kNone, 9}));
  const Floats found = f.result<float>(params);
  const Floats expected = {0, 2, 3, 10, 11, 12, 13};
  CHECK(std::equal(expected.begin(), expected.end(), found.begin()));
  CHECK(std::isnan(found[7]) && std::isnan(found[8]));
}

TEST(several_intervals_in_one_vertex) {
  for (const bool updates : {false, true}) {  // columns 2 and 3 of a row, and the row after it
    OneVertex f(templateVertex(
        updates ? "popops::UpdateIntervalsDEC" : "popops::SelectFromIntervals", FLOAT));
    const Tensor params = f.onTile<float>({2, 4}, {2, 3, 10, 11, 4, 5, 6, 7});
    const Tensor out = f.onTile<float>({2, 2}, {-1, -1, -1, -1});
    f.graph.connect(f.v["params"], params);
    f.graph.connect(f.v["indices"], f.onTile<unsigned>({2, 2}, {3, 0, 2, 0}));
    if (!updates) f.graph.connect(f.v["output"], out);
    f.graph.setInitialValue<unsigned>(f.v["rowsStart"], Numbers{0, 2, 0});
    f.graph.setInitialValue<unsigned>(f.v["firstStartCol"], Numbers{2, 0});
    f.graph.setInitialValue<unsigned>(f.v["lastEndCol"], Numbers{2, 4});
    f.graph.setInitialValue<unsigned>(f.v["rowCounts"], Numbers{2, 1});
    f.graph.setInitialValue(f.v["paramsWidth"], 4);
    CHECK(f.result<float>(updates ? params : out) ==
          (updates ? Floats{2, 2, 9, 11, 4, 5, 5, 7} : Floats{3, 10, 6, -1}));
  }
}

TEST(columns_of_a_region) {
  for (const bool updates : {false, true}) {  // three rows of columns 4 and 5, then of column 6
    OneVertex f(templateVertex(
        updates ? "popops::UpdateColumnsDEC" : "popops::SelectFromRowsInColumns", HALF));
    const Tensor params = f.onTile<float>({1, 9}, {0, 1, 10, 11, 20, 21, 2, 12, 22}, HALF);
    const Tensor out = f.onTile<float>({1, 3}, {-1, -1, -1}, HALF);
    f.graph.connect(f.v["params"], params);
    f.graph.connect(f.v["indices"], f.onTile<unsigned>({1, 3}, {6, 4, 0}));
    if (!updates) f.graph.connect(f.v["output"], out);
    f.graph.setInitialValue<unsigned>(f.v["columnWidths"], Numbers{2, 1});
    f.graph.setInitialValue<unsigned>(f.v["regionHeights"], Numbers{3});
    f.graph.setInitialValue<unsigned>(f.v["regionWidths"], Numbers{2});
    f.graph.setInitialValue<unsigned>(f.v["firstColumns"], Numbers{4});
    f.graph.setInitialValue(f.v["paramsWidth"], 8);
    f.prog.add(program::Execute(f.cs));
    const Tensor found = popops::cast(f.graph, updates ? params : out, FLOAT, f.prog);
    CHECK(f.run<float>(found) ==
          (updates ? Floats{0, 1, 9, 11, 20, 21, 1, 12, 22} : Floats{2, 10, 0}));
  }
}

TEST(elements_are_compared_at_a_distance) {
  for (const bool with_values : {false, true}) {
    // One worker compares elements at distance 2 in two runs; the order changes after two.
    const std::string type =
        with_values ? templateVertex("popops::CompareAndSwapAtDistanceKeyVal", FLOAT, UNSIGNED_INT)
                    : templateVertex("popops::CompareAndSwapAtDistance", FLOAT);
    OneVertex f(type);
    const Tensor keys = f.onTile<float>({8}, {5, 1, 2, 3, 4, 7, 6, 0});
    const Tensor values = f.onTile<unsigned>({8}, {50, 10, 20, 30, 40, 70, 60, 0});
    f.graph.connect(f.v["keys"], keys);
    if (with_values) f.graph.connect(f.v["values"], values);
    f.graph.connect(f.v["worklists"],
                    f.onTile<unsigned short>({1, 7}, {0, 0, 1, 0, 2, 2, 4}, UNSIGNED_SHORT));
    f.graph.setInitialValue(f.v["distanceToChangeOrder"], 2);
    // Ascending: (5, 2), (1, 3); descending: (4, 6), (7, 0).
    if (with_values) {
      CHECK(f.result<unsigned>(values) == (Numbers{20, 10, 50, 30, 60, 70, 40, 0}));
    } else {
      CHECK(f.result<float>(keys) == (Floats{2, 1, 5, 3, 6, 7, 4, 0}));
    }
  }
}
