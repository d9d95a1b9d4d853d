#include <cmath>
#include <limits>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "OneVertex.hpp"

/// The vertices of popops' slices, reductions and transposes, and of poprand, added by name.
using namespace poplar;
using poputil::templateVertex;

namespace {

using Floats = std::vector<float>;

/// Connects MultiSlice or a similar vertex to a table of 5 rows of 2; their offsets begin at 10.
void connectTable(OneVertex& f, const Tensor& table, const Tensor& slices,
                  const std::vector<unsigned>& offsets) {
  f.graph.connect(f.v["offsets"], f.onTile<unsigned>({offsets.size()}, offsets));
  f.graph.connect(f.v["baseT"], table);
  f.graph.connect(f.v["subT"], slices);
  f.graph.setInitialValue(f.v["baseOffset"], 10);
  f.graph.setInitialValue(f.v["numBaseElements"], 5);
  f.graph.setInitialValue(f.v["regionSize"], 2);
  f.graph.setInitialValue(f.v["indicesAreSorted"], false);
  f.graph.setInitialValue(f.v["maxElementsPerWorker"], 1);
}
const Floats kTable = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};

}  // namespace

TEST(slices_of_a_table_leave_other_tiles_rows_out) {
  OneVertex f(templateVertex("popops::MultiSlice", FLOAT));
  const Tensor slices = f.onTile<float>({6}, Floats(6, -1));
  connectTable(f, f.onTile<float>({10}, kTable), slices, {14, 9, 11});
  f.graph.setInitialValue(f.v["splitSingleRegion"], false);
  CHECK(f.result<float>(slices) == (Floats{40, 41, -1, -1, 10, 11}));
}

TEST(updates_of_a_table_are_in_the_order_of_offsets) {
  OneVertex f(templateVertex("popops::MultiUpdate", FLOAT));
  const Tensor table = f.onTile<float>({10}, kTable);
  connectTable(f, table, f.onTile<float>({6}, {1, 2, 3, 4, 5, 6}), {12, 15, 12});
  f.graph.setInitialValue(f.v["splitSingleRegion"], false);
  CHECK(f.result<float>(table) == (Floats{0, 1, 10, 11, 5, 6, 30, 31, 40, 41}));

  OneVertex g(templateVertex("popops::MultiUpdateOp", FLOAT, false, "popops::Operation::MAX"));
  const Tensor most = g.onTile<float>({10}, kTable);
  connectTable(g, most, g.onTile<float>({4}, {15, 5, 12, 40}), {11, 11});
  CHECK(g.result<float>(most) == (Floats{0, 1, 15, 40, 20, 21, 30, 31, 40, 41}));

  OneVertex h(
      templateVertex("popops::ScaledMultiUpdateOp", INT, INT, false, "popops::Operation::ADD"));
  const Tensor sums = h.onTile<int>({10}, std::vector<int>(10, 1));
  connectTable(h, sums, h.onTile<int>({4}, {1, 2, 3, 4}), {10, 10});
  h.graph.connect(h.v["scale"], h.onTile<int>({}, {10}));
  CHECK(h.result<int>(sums) == (std::vector<int>{41, 61, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(dynamic_slices_go_round) {
  OneVertex f(templateVertex("popops::DynamicSlice1D", FLOAT));
  const Tensor slice = f.onTile<float>({4}, Floats(4));
  f.graph.connect(f.v["offset"], f.onTile<unsigned>({}, {4}));
  f.graph.connect(f.v["baseT"], f.onTile<float>({10}, kTable));
  f.graph.connect(f.v["subT"], slice);
  f.graph.setInitialValue(f.v["numBaseElements"], 5);
  f.graph.setInitialValue(f.v["numSubElements"], 2);
  f.graph.setInitialValue(f.v["regionSize"], 2);
  CHECK(f.result<float>(slice) == (Floats{40, 41, 0, 1}));

  OneVertex g(templateVertex("popops::DynamicUpdateSlice2d", INT));
  const Tensor base = g.onTile<int>({4, 3}, std::vector<int>(12));
  g.graph.connect(g.v["offset"], g.onTile<unsigned>({}, {1}));
  g.graph.connect(g.v["baseT"], base);
  g.graph.connect(g.v["subT"], g.onTile<int>({2, 3}, {1, 2, 3, 4, 5, 6}));
  g.graph.setInitialValue(g.v["numBaseElements"], 2);
  g.graph.setInitialValue(g.v["numSubElements"], 1);
  g.graph.setInitialValue(g.v["numRegions"], 2);
  CHECK(g.result<int>(base) == (std::vector<int>{0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6}));
}

TEST(reductions_of_contiguous_elements) {
  struct Case {
    const char* reduce;
    Floats expected;
  };
  for (const Case& c : {Case{"Add", {6, -1}}, Case{"Mul", {6, -8}}, Case{"Max", {3, 2}},
                        Case{"Min", {1, -4}}, Case{"SquareAdd", {14, 21}}}) {
    for (const bool updates : {false, true}) {
      OneVertex f(templateVertex("popops::ContinuousReduce",
                                 std::string("popops::Reduce") + c.reduce, FLOAT, FLOAT, updates));
      const Tensor out = f.onTile<float>({2}, {100, 200});
      f.graph.connect(f.v["partials"], f.onTile<float>({6}, {1, 2, 3, -4, 1, 2}));
      f.graph.connect(f.v["out"], out);
      f.graph.setInitialValue(f.v["numOutputsM1"], 1);
      f.graph.setInitialValue(f.v["numPartials"], 3);
      Floats expected = c.expected;
      if (updates) expected = {expected[0] + 100, expected[1] + 200};
      if (f.result<float>(out) != expected) check::fail(__FILE__, __LINE__, c.reduce, updates);
    }
  }
  OneVertex any("popops::ContinuousReduce<popops::ReduceOr,bool,bool,false>");
  const Tensor out = any.onTile<char>({2}, {false, true}, BOOL);
  any.graph.connect(any.v["partials"], any.onTile<char>({4}, {false, true, false, false}, BOOL));
  any.graph.connect(any.v["out"], out);
  any.graph.setInitialValue(any.v["numOutputsM1"], 1);
  any.graph.setInitialValue(any.v["numPartials"], 2);
  CHECK(any.result<char>(out) == (std::vector<char>{1, 0}));
}

TEST(reductions_of_rows_and_their_scale) {
  // Two outputs, each of which reduces two rows of twice its size.
  const auto rows = [](const std::string& type, bool scales) {
    OneVertex f(type);
    const Tensor out = f.onTile<float>({2, 2}, {100, 200, 300, 400});
    const Tensor partials = f.onTile<float>({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8,  //
                                                     9, 10, 11, 12, 13, 14, 15, 16});
    f.graph.connect(f.v["out"], out);
    f.graph.connect(f.v["partials"], partials);
    f.graph.connect(f.v["numPartials"], f.onTile<unsigned short>({2}, {2, 2}));
    if (scales) f.graph.connect(f.v["k"], f.onTile<float>({1}, {0.5F}));
    return f.result<float>(out);
  };
  CHECK(rows("popops::Reduce<popops::ReduceAdd,float,float,false,0u>", false) ==
        (Floats{16, 20, 48, 52}));
  CHECK(rows("popops::ScaledReduce<popops::ReduceMax,float,float,true,"
             "popops::ReductionSpecialisation::DEFAULT>",
             true) == (Floats{103.5F, 204, 307.5F, 408}));

  OneVertex one(
      templateVertex("popops::ScaledReduce", "popops::ReduceAdd", HALF, FLOAT, false, 2U));
  const Tensor sum = one.onTile<float>({1}, {0});
  one.graph.connect(one.v["out"], sum);
  one.graph.connect(one.v["partials"], one.onTile<float>({4}, {2048, 1, 1, 1}, HALF));
  one.graph.connect(one.v["k"], one.onTile<float>({1}, {2}));
  one.graph.setInitialValue(one.v["numPartials"], 4);
  CHECK(one.result<float>(sum) == (Floats{4102}));  // kept in float

  // The first two columns of rows 0, 1, 4 and 5.
  OneVertex strided(
      "popops::Reduce<popops::ReduceMin,int,int,false,"
      "popops::ReductionSpecialisation::STRIDED_REDUCE_OUTER>");
  std::vector<int> table(24);
  for (int i = 0; i < 24; ++i) table[i] = i % 5 == 0 ? -i : i;
  const Tensor least = strided.onTile<int>({2}, {0, 0});
  strided.graph.connect(strided.v["out"], least);
  strided.graph.connect(strided.v["partials"], strided.onTile<int>({24}, table));
  strided.graph.connect(strided.v["countsAndStrides"],
                        strided.onTile<unsigned>({5}, {0, 1, 2, 1, 6}));
  CHECK(strided.result<int>(least) == (std::vector<int>{-20, -5}));

  OneVertex equal(
      templateVertex("popops::ReducePartialsEqualSize", "popops::ReduceMul", INT, INT, true));
  const Tensor products = equal.onTile<int>({4}, {10, 20, 30, 40});
  equal.graph.connect(equal.v["out"], products);
  equal.graph.connect(equal.v["partials"],
                      equal.onTile<int>({2, 8}, {1, 2, 3, 4, 2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 3}));
  equal.graph.setInitialValue(equal.v["outCount"], 1);
  equal.graph.setInitialValue(equal.v["partialsSizeM1"], 1);
  CHECK(equal.result<int>(products) == (std::vector<int>{16, 32, 48, 64}));
}

TEST(reductions_of_logarithms_add_their_scale) {
  OneVertex logs(templateVertex("popops::ScaledContinuousReduce", "popops::ReduceLogAdd", FLOAT,
                                FLOAT, false));
  const Tensor log = logs.onTile<float>({1}, {0});
  logs.graph.connect(logs.v["out"], log);
  logs.graph.connect(logs.v["partials"], logs.onTile<float>({2}, {0, 0}));
  logs.graph.connect(logs.v["k"], logs.onTile<float>({1}, {-std::log(2.0F)}));
  logs.graph.setInitialValue(logs.v["numOutputsM1"], 0);
  logs.graph.setInitialValue(logs.v["numPartials"], 2);
  CHECK(std::abs(logs.result<float>(log)[0]) < 1e-6F);
}

TEST(vertices_of_poplin_and_popsparse) {
  OneVertex outer(templateVertex("poplin::OuterProduct", FLOAT));
  const Tensor products = outer.onTile<float>({2, 6}, Floats(12));
  outer.graph.connect(outer.v["in"], outer.onTile<float>({3}, {1, 2, 3}));
  outer.graph.connect(outer.v["weights"], outer.onTile<float>({4}, {1, 10, 100, 1000}));
  outer.graph.connect(outer.v["out"], products);
  outer.graph.setInitialValue(outer.v["chansPerGroup"], 2);
  CHECK(outer.result<float>(products) ==
        (Floats{1, 10, 2, 20, 3, 30, 100, 1000, 200, 2000, 300, 3000}));

  for (const char* form :
       {"poplin::ReduceAdd<float,half>", "poplin::ReduceAdd<float,half,false,false>",
        "poplin::ReduceAdd<float,half,true,true>"}) {
    const bool one_input = std::string(form).find("<float,half,true") != std::string::npos;
    OneVertex f(form);
    const Tensor sums = f.onTile<float>({2}, {0, 0});
    const Tensor partials = f.onTile<float>({3, 2}, {2048, 1, 1, 2, 1, 3}, HALF);
    f.graph.connect(f.v["partials"], one_input ? partials.slice(1, 3).flatten() : partials);
    if (one_input) f.graph.connect(f.v["initialPartial"], partials[0]);
    f.graph.connect(f.v["out"], sums);
    f.graph.setInitialValue(f.v["numPartials"], one_input ? 2 : 3);
    f.graph.setInitialValue(f.v["numElems"], 2);
    CHECK(f.result<float>(sums) == (Floats{2050, 6}));
  }

  for (const Type& type : {FLOAT, HALF}) {
    // 16 indices: in halves four for each of four workers, in floats two for each of six, and four.
    const unsigned short bytes = type == HALF ? 2 : 4;
    OneVertex f(templateVertex("popsparse::SparseGatherElementWise", type));
    Floats in(16), expected(16);
    std::vector<unsigned short> indices(16);
    for (unsigned i = 0; i < 16; ++i) in[i] = static_cast<float>(i * i);
    for (unsigned i = 0; i < 16; ++i) {
      expected[i] = in[i * 5 % 16];
      indices[i] = static_cast<unsigned short>(i * 5 % 16 * bytes);
    }
    const Tensor gathered = f.onTile<float>({16}, Floats(16), type);
    f.graph.connect(f.v["rIn"], f.onTile<float>({16}, in, type));
    f.graph.connect(f.v["rOut"], gathered);
    f.graph.connect(f.v["indices"], f.onTile<unsigned short>({16}, indices));
    f.graph.setInitialValue(f.v["numIndices"], type == HALF ? 0 : 2);
    f.graph.setInitialValue(f.v["workerOffsets"], type == HALF ? 0b001111 : 0b000011);
    std::vector<std::uint16_t> halves(16);
    copyFloatToDeviceHalf(f.graph.getTarget(), expected.data(), halves.data(), 16);
    CHECK(type == HALF ? f.result<std::uint16_t>(gathered) == halves
                       : f.result<float>(gathered) == expected);
  }
}

TEST(transposes_of_matrices) {
  constexpr unsigned kMatrices = 7, kRows = 4, kColumns = 8, kSize = kRows * kColumns;
  std::vector<short> values(kMatrices * kSize), expected(values.size());
  for (unsigned i = 0; i < values.size(); ++i) values[i] = static_cast<short>(i);
  for (unsigned m = 0; m < kMatrices; ++m) {
    for (unsigned i = 0; i < kSize; ++i)
      expected[m * kSize + i % kColumns * kRows + i / kColumns] = values[m * kSize + i];
  }
  for (const char* name : {"TransposeSupervisor", "Transpose1D", "Transpose1DSingleWorker"}) {
    OneVertex f(templateVertex(std::string("popops::") + name, SHORT));
    const bool single = name == std::string("Transpose1DSingleWorker");
    const std::string rows = name == std::string("Transpose1D") ? "D4Or8" : "D4";
    const Tensor out = f.onTile<short>({values.size()}, std::vector<short>(values.size()));
    f.graph.connect(f.v["src"], f.onTile<short>({values.size()}, values));
    f.graph.connect(f.v["dst"], out);
    f.graph.setInitialValue(f.v["numSrcRows" + rows], kRows / 4);
    f.graph.setInitialValue(f.v["numSrcColumns" + rows], kColumns / 4);
    if (single) {
      f.graph.setInitialValue(f.v["numTranspositionsM1"], kMatrices - 1);
    } else {
      f.graph.setInitialValue(f.v["numTranspositions"], 2);
      f.graph.setInitialValue(f.v["workerCount"], kMatrices - 6);
    }
    CHECK(f.result<short>(out) == expected);
  }
  OneVertex g(templateVertex("popops::Transpose2d", FLOAT));
  const Tensor out = g.onTile<float>({2, 6}, Floats(12));
  g.graph.connect(g.v["src"], g.onTile<float>({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  g.graph.connect(g.v["dst"], out);
  g.graph.setInitialValue(g.v["numSrcRows"], 2);
  g.graph.setInitialValue(g.v["numSrcColumns"], 3);
  CHECK(g.result<float>(out) == (Floats{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}));
}

TEST(counters_begin_at_their_offsets) {
  OneVertex f(templateVertex("popops::Iota", INT));
  const Tensor out = f.onTile<int>({2, 3}, std::vector<int>(6));
  f.graph.connect(f.v["out"], out);
  f.graph.connect(f.v["offsets"], f.onTile<int>({2}, {5, -1}));
  CHECK(f.result<int>(out) == (std::vector<int>{5, 6, 7, -1, 0, 1}));
}

TEST(nans_and_infinities_are_found) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, NAN, 1.0F}) {
    for (const bool or_infinity : {true, false}) {
      const float found = std::isnan(bad) || (or_infinity && std::isinf(bad)) ? 1.0F : 0.0F;
      OneVertex f(templateVertex("popops::HasNaNOrInf2D", FLOAT, or_infinity));
      const Tensor out = f.onTile<float>({}, {7});
      f.graph.connect(f.v["in"], f.onTile<float>({2, 2}, {1, 2, bad, 4}));
      f.graph.connect(f.v["out"], out);
      CHECK_EQ(f.result<float>(out)[0], found);

      Floats values(15, 1);
      values[14] = bad;
      OneVertex g(templateVertex("popops::HasNaNOrInf1D", FLOAT, or_infinity));
      const Tensor set = g.onTile<float>({}, {0});
      g.graph.connect(g.v["in"], g.onTile<float>({15}, values));
      g.graph.connect(g.v["outSetIfFound"], set);
      g.graph.setInitialValue(g.v["sizeIn8BytesPerWorker"], 1);
      g.graph.setInitialValue(g.v["remWorkerId"], 1);
      g.graph.setInitialValue(g.v["remWorkerExtras"], 1);
      CHECK_EQ(g.result<float>(set)[0], found);
    }
  }
}

TEST(losses_and_their_gradients) {
  OneVertex f(templateVertex("popnn::LossSumSquaredTransform", FLOAT));
  const Tensor deltas = f.onTile<float>({2}, {0, 0});
  const Tensor losses = f.onTile<float>({2}, {0, 0});
  f.graph.connect(f.v["probs"], f.onTile<float>({2}, {3, 1}));
  f.graph.connect(f.v["expected"], f.onTile<float>({2}, {1, 1}));
  f.graph.connect(f.v["deltas"], deltas);
  f.graph.connect(f.v["transformed"], losses);
  f.graph.setInitialValue(f.v["size"], 2);
  CHECK(f.result<float>(concat(deltas, losses)) == (Floats{2, 0, 2, 0}));

  OneVertex g(templateVertex("popnn::LossCrossEntropyTransform", FLOAT));
  const Tensor gradient = g.onTile<float>({2}, {0, 0});
  const Tensor entropy = g.onTile<float>({2}, {0, 0});
  g.graph.connect(g.v["probs"], g.onTile<float>({2}, {1, 3}));  // a quarter and three, by 4
  g.graph.connect(g.v["expected"], g.onTile<float>({2}, {0, 1}));
  g.graph.connect(g.v["deltas"], gradient);
  g.graph.connect(g.v["transformed"], entropy);
  g.graph.connect(g.v["deltasScale"], g.onTile<float>({}, {8}));
  g.graph.connect(g.v["modelOutputScaling"], g.onTile<float>({}, {4}));
  g.graph.setInitialValue(g.v["size"], 2);
  const auto found = g.result<float>(concat(gradient, entropy));
  CHECK_EQ(found[0], 2.0F);
  CHECK_EQ(found[1], -2.0F);
  CHECK_EQ(found[2], 0.0F);
  CHECK_NEAR(found[3], -std::log(0.75), 1e-6);
}

TEST(random_numbers_by_vertices) {
  constexpr unsigned kCount = 3000;
  OneVertex f(templateVertex("poprand::Uniform", FLOAT));
  const Tensor x = f.onTile<float>({kCount}, Floats(kCount));
  f.graph.connect(f.v["out"], x);
  f.graph.setInitialValue(f.v["offset"], -1.0F);
  f.graph.setInitialValue(f.v["scale"], 4.0F);
  double sum = 0;
  for (const float value : f.result<float>(x)) {
    CHECK(value >= -1 && value < 3);
    sum += value;
  }
  CHECK_NEAR(sum / kCount, 1.0, 0.12);  // 5 standard errors

  OneVertex g(templateVertex("poprand::Uniform", INT));
  const Tensor y = g.onTile<int>({kCount}, std::vector<int>(kCount));
  g.graph.connect(g.v["out"], y);
  g.graph.setInitialValue(g.v["offset"], -2);
  g.graph.setInitialValue(g.v["scale"], 3u);
  std::vector<unsigned> counts(3);
  for (const int value : g.result<int>(y)) {
    CHECK(value >= -2 && value <= 0);
    ++counts[static_cast<std::size_t>(value + 2)];
  }
  for (const unsigned count : counts) CHECK_NEAR(count, kCount / 3.0, 130.0);

  OneVertex h(templateVertex("poprand::Normal", FLOAT));
  const Tensor z = h.onTile<float>({kCount}, Floats(kCount));
  h.graph.connect(h.v["out"], z);
  h.graph.setInitialValue(h.v["mean"], 10.0F);
  h.graph.setInitialValue(h.v["stdDev"], 2.0F);
  double mean = 0, square = 0;
  for (const float value : h.result<float>(z)) {
    mean += value / kCount;
    square += (value - 10.0) * (value - 10.0) / kCount;
  }
  CHECK_NEAR(mean, 10.0, 0.2);
  CHECK_NEAR(square, 4.0, 0.6);
}
