#include <algorithm>
#include <cstdint>
#include <numeric>
#include <popnn/codelets.hpp>
#include <popops/codelets.hpp>
#include <popsys/codelets.hpp>
#include <poputil/VertexTemplates.hpp>
#include <random>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"
#include "OneVertex.hpp"

/// Vertices of PopLibs that programs add by name.
using namespace poplar;
using namespace poplar::program;
using poputil::templateVertex;

TEST(classes_are_gathered_in_chunks_with_their_positions) {
  for (const bool largest : {true, false}) {
    const std::string name = largest ? "Max" : "Min";
    OneVertex f(templateVertex("popnn::Reduce" + name + "ClassGather", HALF, UNSIGNED_INT));
    const Tensor x = f.onTile<float>({7}, {1, 4, 4, -2, 0, 9, -5}, HALF);
    const Tensor value = f.onTile<float>({3}, {0, 0, 0});
    const Tensor index = f.onTile<unsigned>({3}, {0, 0, 0});
    f.graph.connect(f.v["activations"], x);
    f.graph.connect(f.v[largest ? "maxValue" : "minValue"], value);
    f.graph.connect(f.v[largest ? "maxIndex" : "minIndex"], index);
    f.graph.setInitialValue(f.v["index"], 100);
    f.graph.setInitialValue(f.v["size"], 7);
    f.graph.setInitialValue(f.v["workerSize"], 3);
    const auto positions = f.result<unsigned>(index);
    CHECK(positions ==
          (largest ? std::vector<unsigned>{101, 105, 106} : std::vector<unsigned>{100, 103, 106}));
  }
}

TEST(the_best_of_labelled_classes) {
  OneVertex f(templateVertex("popnn::ReduceMaxClassSparse", FLOAT, INT));
  const Tensor value = f.onTile<float>({}, {0});
  const Tensor label = f.onTile<int>({}, {0});
  f.graph.connect(f.v["activations"], f.onTile<float>({4}, {1, 7, 3, 7}));
  f.graph.connect(f.v["labels"], f.onTile<int>({4}, {5, 6, 7, 8}));
  f.graph.connect(f.v["maxValue"], value);
  f.graph.connect(f.v["maxIndex"], label);
  CHECK_EQ(f.result<int>(label)[0], 6);
}

TEST(the_best_few_of_classes_in_chunks_and_of_labelled_ones) {
  OneVertex f(templateVertex("popnn::ReduceMaxNClassGather", FLOAT, true));
  const Tensor values = f.onTile<float>({6}, std::vector<float>(6));
  const Tensor positions = f.onTile<unsigned>({6}, std::vector<unsigned>(6));
  f.graph.connect(f.v["activations"], f.onTile<float>({5}, {1, 3, 2, 3, 9}));
  f.graph.connect(f.v["maxValues"], values);
  f.graph.connect(f.v["maxValuesIndices"], positions);
  f.graph.setInitialValue(f.v["index"], 10);
  f.graph.setInitialValue(f.v["numK"], 3);
  f.graph.setInitialValue(f.v["size"], 5);
  f.graph.setInitialValue(f.v["divisorLog2"], 2);
  f.graph.setInitialValue(f.v["shouldSort"], true);
  CHECK((f.result<unsigned>(positions) == std::vector<unsigned>{11, 13, 12, 14, ~0u, ~0u}));

  OneVertex g(templateVertex("popnn::ReduceMaxNClassSparse", INT, false));
  const Tensor best = g.onTile<int>({2}, {0, 0});
  const Tensor labels = g.onTile<unsigned>({2}, {0, 0});
  g.graph.connect(g.v["activations"], g.onTile<int>({3}, {-1, 5, 4}));
  g.graph.connect(g.v["labels"], g.onTile<unsigned>({3}, {7, 8, 9}));
  g.graph.connect(g.v["maxValues"], best);
  g.graph.connect(g.v["maxValuesIndices"], labels);
  g.graph.setInitialValue(g.v["numK"], 2);
  g.graph.setInitialValue(g.v["shouldSort"], false);
  CHECK((g.result<unsigned>(labels) == std::vector<unsigned>{8, 9}));
}

TEST(accuracy_leaves_masked_labels_out) {
  OneVertex f(templateVertex("popnn::CalcAccuracy", UNSIGNED_INT));
  const Tensor correct = f.onTile<unsigned>({}, {10});
  f.graph.connect(f.v["maxPerBatch"], f.onTile<unsigned>({3}, {1, 2, ~0u}));
  f.graph.connect(f.v["expected"], f.onTile<unsigned>({3}, {1, 3, ~0u}));
  f.graph.connect(f.v["numCorrect"], correct);
  CHECK_EQ(f.result<unsigned>(correct)[0], 11u);
}

TEST(fills_write_their_connections_alone) {
  OneVertex f(templateVertex("popops::Fill", HALF));
  const Tensor x = f.onTile<float>({5}, {1, 2, 3, 4, 5}, HALF);
  f.graph.connect(f.v["out"], x.slice(1, 3));
  f.graph.setInitialValue(f.v["in"], 2.5f);
  f.prog.add(Execute(f.cs));
  f.graph.createHostRead("half", x);
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  std::vector<std::uint16_t> bits(5);
  engine.readTensor("half", bits.data(), bits.data() + 5);
  std::vector<float> values(5);
  copyDeviceHalfToFloat(f.graph.getTarget(), bits.data(), values.data(), 5);
  CHECK((values == std::vector<float>{1, 2.5f, 2.5f, 4, 5}));

  OneVertex rows(templateVertex("popops::Fill2d", INT));
  const Tensor y = rows.onTile<int>({2, 3}, {0, 1, 2, 3, 4, 5});
  rows.graph.connect(rows.v["out"], {y[0].slice(0, 2), y[1].slice(1, 3)});
  rows.graph.setInitialValue(rows.v["in"], -4);
  CHECK((rows.result<int>(y) == std::vector<int>{-4, -4, 2, 3, -4, -4}));
}

TEST(heaps_sort_keys_with_their_values) {
  std::mt19937 random(3);
  for (const unsigned n : {1u, 2u, 9u, 64u}) {
    OneVertex f(templateVertex("popops::HeapSortVertexKV", UNSIGNED_INT, FLOAT));
    std::vector<unsigned> keys(n);
    std::iota(keys.begin(), keys.end(), 3);
    std::shuffle(keys.begin(), keys.end(), random);
    const std::vector<float> values(keys.begin(), keys.end());
    const Tensor key = f.onTile<unsigned>({n}, keys);
    const Tensor value = f.onTile<float>({n}, values);
    f.graph.connect(f.v["key"], key);
    f.graph.connect(f.v["value"], value);
    const auto sorted = f.result<float>(value);
    for (unsigned i = 0; i < n; ++i) CHECK_EQ(sorted[i], static_cast<float>(i + 3));
  }
}

TEST(circular_buffers_move_their_index) {
  OneVertex f("popops::CircOffset");
  const Tensor out = f.onTile<unsigned>({1}, {0});
  f.graph.connect(f.v["indexIn"], f.onTile<unsigned>({1}, {5})[0]);
  f.graph.connect(f.v["indexOut"], out[0]);
  f.graph.setInitialValue(f.v["hSize"], 7);
  f.graph.setInitialValue(f.v["offset"], 4);
  const auto step = f.graph.addVertex(f.cs, "popops::CircBufIncrIndex");
  const Tensor index = f.onTile<unsigned>({1}, {6});
  f.graph.connect(step["index"], index[0]);
  f.graph.setInitialValue(step["hSize"], 7);
  f.graph.setTileMapping(step, 0);
  CHECK((f.result<unsigned>(concat(out, index)) == std::vector<unsigned>{2, 0}));
}

TEST(timers_give_the_cycles_between_them) {
  OneVertex f("popsys::TimeItStart");
  const Tensor start = f.onTile<unsigned>({3}, {7, 7, 7});
  f.graph.connect(f.v["out"], start.slice(0, 2));
  const auto slow = f.graph.addComputeSet("slow");
  const auto fill = f.graph.addVertex(slow, templateVertex("popops::Fill", FLOAT));
  f.graph.connect(fill["out"], f.onTile<float>({3}, {0, 0, 0}));
  f.graph.setInitialValue(fill["in"], 1.0f);
  f.graph.setPerfEstimate(fill, 6000);
  f.graph.setTileMapping(fill, 0);
  const auto end = f.graph.addComputeSet("end");
  const auto v = f.graph.addVertex(end, "popsys::TimeItEnd");
  const Tensor taken = f.onTile<unsigned>({2}, {7, 7});
  f.graph.connect(v["startCount"], start.slice(0, 2));
  f.graph.connect(v["out"], taken);
  f.graph.setTileMapping(v, 0);
  f.prog.add(Sequence({Execute(f.cs), Execute(slow), Execute(end)}));
  const auto found = f.run<unsigned>(concat(start, taken));
  CHECK_EQ(found[1], 0u);
  CHECK_EQ(found[2], 7u);
  CHECK_NEAR(static_cast<double>(found[3]), 6.0 * 6000, 1000.0);  // estimates are of a worker
  CHECK_EQ(found[4], 0u);
}

TEST(codelets_of_the_user_come_before_those_of_libraries) {
  Fixture f;
  CHECK(f.graph.hasCodelet("popops::CircOffset"));
  CHECK(!f.graph.hasCodelet("popops::Unheard"));
  CHECK_THROWS(f.graph.addVertex(f.graph.addComputeSet(), "popops::Unheard"), "popops::Unheard");
  std::istringstream own(
      "#include <poplar/Vertex.hpp>\n"
      "namespace popops {\n"
      "struct CircOffset : poplar::Vertex {\n"
      "  poplar::Output<unsigned> mine;\n"
      "  bool compute() { *mine = 42; return true; }\n"
      "};\n"
      "}\n");
  f.graph.addCodelets(own);
  const auto cs = f.graph.addComputeSet();
  const Tensor t = f.constant<unsigned>({1}, {0});
  f.graph.setTileMapping(t, 0);
  const auto v = f.graph.addVertex(cs, "popops::CircOffset", {{"mine", t[0]}});
  f.graph.setTileMapping(v, 0);
  f.prog.add(Execute(cs));
  CHECK_EQ(f.run<unsigned>(t)[0], 42u);
}
