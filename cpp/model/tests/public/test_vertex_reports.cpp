#include <map>
#include <poplar/Engine.hpp>
#include <poplin/MatMul.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <pva/pva.hpp>
#include <sstream>
#include <string>

#include "Check.hpp"
#include "Fixture.hpp"

// The vertices that reports count for functions of PopLibs, which are one kernel each.
using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

namespace {

bool startsWith(const std::string& text, const std::string& beginning) {
  return text.rfind(beginning, 0) == 0;
}

using Counts = std::map<std::string, std::uint64_t>;

Counts countsOf(const std::vector<pva::VertexInstance>& instances) {
  Counts counts;
  for (const auto& each : instances) counts[each.type().name()] += each.count();
  return counts;
}

/// The vertices of all tiles, after checking that the compute sets and the profile agree.
Counts vertices(Fixture& f) {
  const Engine engine(f.graph, f.prog);
  const auto compilation = engine.getReport().compilation();
  Counts by_tile, by_set;
  for (const auto& tile : compilation.tiles())
    for (const auto& [type, count] : countsOf(tile.memory().vertices())) by_tile[type] += count;
  for (const auto& set : compilation.computeSets())
    for (const auto& [type, count] : countsOf(set.vertices())) by_set[type] += count;
  CHECK(by_tile == by_set);
  std::uint64_t all = 0;
  for (const auto& [type, count] : by_tile) all += count;
  CHECK_EQ(compilation.graph().numVertices(), all);
  const auto profile = engine.getGraphProfile();
  CHECK_EQ(profile["graph"]["numVertices"].asUint(), all);
  CHECK_EQ(profile["computeSets"]["vertexCounts"].sum2DUint(), all);
  std::ostringstream summary;
  engine.printProfileSummary(summary);
  for (const auto& [type, count] : by_tile)
    CHECK(summary.str().find(type + " (") != std::string::npos);
  return by_tile;
}

Tensor spread(Fixture& f, std::size_t rows, unsigned tiles, Type type = FLOAT) {
  const auto t = f.graph.addVariable(type, {rows, 32});
  for (std::size_t i = 0; i < rows; ++i)
    f.graph.setTileMapping(t[i], static_cast<unsigned>(i * tiles / rows));
  return t;
}

}  // namespace

TEST(an_operation_is_one_vertex_on_each_tile_that_has_some_of_its_result) {
  for (const unsigned tiles : {1U, 3U, 8U}) {
    Fixture f(8);
    const auto a = spread(f, 24, tiles), b = spread(f, 24, tiles);
    popops::add(f.graph, a, b, f.prog);
    popops::sqrtInPlace(f.graph, a, f.prog);
    popops::cast(f.graph, b, HALF, f.prog);
    const Counts expected{
        {"popops::BinaryOp1D<popops::expr::BinaryOpType::ADD,float>", tiles},
        {"popops::Cast1D<float,half>", tiles},
        {"popops::UnaryOp1DInPlace<popops::expr::UnaryOpType::SQRT,float>", tiles}};
    CHECK(vertices(f) == expected);
  }
}

TEST(operations_in_one_expression_are_one_vertex) {
  Fixture f(8);
  const auto a = spread(f, 8, 4), b = spread(f, 8, 4);
  popops::map(f.graph, pe::Mul(pe::Add(pe::_1, pe::_2), pe::Tanh(pe::_1)), {a, b}, f.prog);
  const auto counts = vertices(f);
  CHECK_EQ(counts.size(), 1U);
  CHECK(startsWith(counts.begin()->first, "popops::map::"));
  CHECK_EQ(counts.begin()->second, 4U);
}

TEST(an_operation_is_generated_where_the_options_force_it) {
  for (const bool forced : {false, true}) {
    Fixture f(8);
    const auto a = spread(f, 8, 4);
    const OptionFlags options{{"forceGenerateCodelet", forced ? "true" : "false"}};
    popops::map(f.graph, pe::Abs(pe::_1), {a}, f.prog, {}, options);
    popops::mapInPlace(f.graph, pe::Abs(pe::_1), {a}, f.prog, {}, options);
    for (const auto& [type, count] : vertices(f))
      CHECK_EQ(startsWith(type, "popops::map::"), forced);
  }
}

TEST(cheap_operations_on_single_elements_are_generated) {
  const auto isGenerated = [](const pe::Expr& expr, Type type) {
    Fixture f(4);
    const auto a = f.graph.addVariable(type, {1}), b = f.graph.addVariable(type, {1});
    f.graph.setTileMapping(a, 0);
    f.graph.setTileMapping(b, 0);
    popops::map(f.graph, expr, {a, b}, f.prog);
    const auto counts = vertices(f);
    CHECK_EQ(counts.size(), 1U);
    return startsWith(counts.begin()->first, "popops::map::");
  };
  for (const Type type : {FLOAT, HALF, INT}) {
    CHECK(isGenerated(pe::Add(pe::_1, pe::_2), type));
    CHECK(isGenerated(pe::Sub(pe::_1, pe::_2), type));
    CHECK(isGenerated(pe::Equal(pe::_1, pe::_2), type));
    CHECK(!isGenerated(pe::Divide(pe::_1, pe::_2), type));
    for (const int value : {0, -1, 2}) CHECK(isGenerated(pe::Mul(pe::_1, pe::Const(value)), type));
    for (const int value : {4, -100}) CHECK(!isGenerated(pe::Mul(pe::_1, pe::Const(value)), type));
  }
}

TEST(reductions_have_vertices_where_elements_and_where_results_are) {
  Fixture f(8);
  const auto whole = spread(f, 8, 8);
  popops::reduce(f.graph, whole, {0, 1}, popops::Operation::MAX, f.prog);
  const auto counts = vertices(f);
  std::uint64_t on_elements = 0, on_results = 0;
  for (const auto& [type, count] : counts) {
    if (startsWith(type, "popops::ContinuousReduce<popops::ReduceMax,float")) on_elements += count;
    if (startsWith(type, "popops::Reduce<popops::ReduceMax,float")) on_results += count;
  }
  CHECK(on_elements == 8 || on_elements == 0);
  CHECK_EQ(on_results, 1U);
}

TEST(a_type_has_its_code_once_on_a_tile_and_its_state_for_each_vertex) {
  Fixture once(8), twice(8);
  for (Fixture* f : {&once, &twice}) {
    const auto a = spread(*f, 8, 4);
    popops::absInPlace(f->graph, a, f->prog);
    if (f == &twice) popops::absInPlace(f->graph, a, f->prog);
  }
  const auto bytesOf = [](Fixture& f, const char* kind) {
    const Engine engine(f.graph, f.prog);
    return engine.getGraphProfile()["memory"]["byVertexType"][kind][0].asUint();
  };
  CHECK(bytesOf(once, "codeBytes") > 0);
  CHECK_EQ(bytesOf(twice, "codeBytes"), bytesOf(once, "codeBytes"));
  CHECK_EQ(bytesOf(twice, "vertexDataBytes"), 2 * bytesOf(once, "vertexDataBytes"));
}

namespace {

/// A vertex of n elements of state, and one of a single value.
const char* const kCodelets = R"(
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Wide : Vertex {
  Output<Vector<float>> out;
  Vector<float> state;
  bool compute() { out[0] = state[0]; return true; }
};
struct Narrow : Vertex {
  Output<float> out;
  bool compute() { *out = 1; return true; }
};
)";

struct Codelets : Fixture {
  ComputeSet cs = graph.addComputeSet("codelets");

  Codelets() : Fixture(8) {
    std::istringstream source(kCodelets);
    graph.addCodelets(source);
  }
  void add(const char* type, unsigned tile, std::size_t state = 0) {
    const auto v = graph.addVertex(cs, type);
    const Tensor out = graph.addVariable(FLOAT, {1});
    graph.setTileMapping(out, tile);
    graph.connect(v["out"], state > 0 ? out : out[0]);
    if (state > 0) graph.setFieldSize(v["state"], state);
    graph.setTileMapping(v, tile);
  }
  /// Code and data of each type, and the state of the fullest tile; `sets` run `runs` times each.
  std::map<std::string, std::vector<std::uint64_t>> bytes(
      unsigned runs = 1, const std::vector<ComputeSet>& sets = {}) {
    prog = Sequence();
    for (unsigned i = 0; i < runs; ++i) {
      if (sets.empty()) prog.add(Execute(cs));
      for (const ComputeSet& each : sets) prog.add(Execute(each));
    }
    const Engine engine(graph, prog);
    const auto profile = engine.getGraphProfile();
    const auto& memory = profile["memory"]["byVertexType"];
    std::map<std::string, std::vector<std::uint64_t>> all;
    const auto& names = profile["vertexTypes"]["names"];
    for (std::size_t i = 0; i < names.size(); ++i)
      all[names[i].asString()] = {memory["codeBytes"][i].asUint(),
                                  memory["vertexDataBytes"][i].asUint()};
    all["fullest"] = {profile["memory"]["vertexStateBytes"].asUint(),
                      profile["memory"]["ipus"][0]["fullestTile"]["vertexCode"].asUint()};
    return all;
  }
};

}  // namespace

TEST(codelets_of_users_have_the_state_of_each_vertex_and_their_code_once_on_a_tile) {
  Codelets one, more, apart;
  one.add("Wide", 0, 10);
  for (Codelets* c : {&more, &apart}) {
    c->add("Wide", 0, 10);
    c->add("Wide", c == &more ? 0 : 1, 30);
    c->add("Narrow", 0);
  }
  const auto first = one.bytes();
  auto on_one = more.bytes(), on_two = apart.bytes();
  CHECK(first.at("Wide")[0] > 0);
  CHECK(first.at("Wide")[1] >= 4 * 10);
  CHECK_EQ(first.at("fullest")[0], first.at("Wide")[1]);
  CHECK(one.bytes(2).at("Wide") == first.at("Wide"));
  CHECK_EQ(on_one["Wide"][1], 2 * first.at("Wide")[1] + 4 * 20);
  CHECK_EQ(on_one["Wide"][0], first.at("Wide")[0]);
  CHECK_EQ(on_one["fullest"][0], on_one["Wide"][1] + on_one["Narrow"][1]);
  CHECK(on_one["Narrow"][1] > 0 && on_one["Narrow"][1] < first.at("Wide")[1]);
  CHECK_EQ(on_two["Wide"][1], on_one["Wide"][1]);
  CHECK_EQ(on_two["Wide"][0], 2 * on_one["Wide"][0]);
  CHECK_EQ(on_two["Narrow"][0], on_one["Narrow"][0]);
}

TEST(a_vertex_has_its_state_once_however_often_its_compute_set_runs) {
  for (const unsigned tiles : {1U, 2U}) {
    Codelets c;
    std::vector<ComputeSet> sets;
    for (unsigned i = 0; i < 3; ++i) {
      sets.push_back(c.cs = c.graph.addComputeSet("set " + std::to_string(i)));
      c.add("Wide", i % tiles, 10 + i);
      if (i == 1) c.add("Narrow", 0);
    }
    auto once = c.bytes(1, sets);
    for (const unsigned runs : {2U, 5U}) CHECK(c.bytes(runs, sets) == once);
    // Sets that share a tile add up there, and their types have their code once.
    const std::uint64_t elsewhere = tiles == 1 ? 0 : once["Wide"][1] / 3;
    CHECK_EQ(once["fullest"][0], once["Wide"][1] + once["Narrow"][1] - elsewhere);
    CHECK_EQ(once["fullest"][1], once["Wide"][0] / tiles + once["Narrow"][0]);
  }
}
