#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <poplar/Engine.hpp>
#include <poplin/MatMul.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <pva/pva.hpp>
#include <sstream>
#include <string>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

/// A product, then a sum in a loop of four turns; the engine writes a report if asked to.
struct Profiled : Fixture {
  explicit Profiled(const OptionFlags& options) : Fixture(16), engine(make(options)) {
    engine.load(device);
    engine.run(0, "first run");
    engine.run(0);
  }
  Engine make(const OptionFlags& options) {
    const auto a = constant<float>({32, 32}, std::vector<float>(1024, 0.5F));
    const auto b = poplin::matMul(graph, a, a, prog, "product");
    Sequence body;
    popops::addInPlace(graph, b, a, body, "sum");
    prog.add(Repeat(4, body));
    graph.createHostRead("b", b);
    return {graph, prog, options};
  }
  Engine engine;
};

double cyclesOf(const std::vector<pva::ExecutionStep>& steps) {
  double cycles = 0;
  for (const auto& step : steps) cycles += static_cast<double>(step.ipus()[0].cycles());
  return cycles;
}

}  // namespace

TEST(reports_say_what_the_profile_says) {
  const Profiled p({});
  const auto report = p.engine.getReport();
  const auto profile = p.engine.getProfile();
  const auto compilation = report.compilation();
  CHECK_EQ(compilation.target().numTiles(), 16U);
  CHECK_EQ(compilation.target().numIPUs(), 1U);
  CHECK_EQ(compilation.tiles().size(), 16U);
  CHECK_EQ(report.poplarVersion().string(), versionString());
  const pva::PoplarVersion version = report.poplarVersion();
  CHECK_EQ(version.majorVer(), version.major());
  CHECK_EQ(version.packageHash(), packageHash());
  CHECK_EQ(report.version().pointVer(), version.point());
  CHECK(report.instrumentationSettings().compute() == pva::InstrumentationSettings::Ipu);
  CHECK(compilation.graph().numComputeSets() >= 2);
  CHECK_EQ(compilation.graph().numComputeSets(), compilation.computeSets().size());
  std::uint64_t fullest = 0;
  for (const auto& tile : compilation.tiles()) {
    const auto memory = tile.memory();
    CHECK_EQ(memory.alwaysLiveBytes() + memory.notAlwaysLiveBytes(),
             memory.total().excludingGaps());
    CHECK(memory.category().vertexCode().nonInterleaved().nonOverlapped() > 0);
    CHECK_EQ(memory.category().globalMessage().total(), 0U);
    fullest = std::max(fullest, memory.total().includingGaps());
  }
  CHECK_EQ(fullest, static_cast<std::uint64_t>(
                        profile["graphProfile"]["memory"]["fullestTileBytes"].asDouble()));
  const auto runs = report.execution().runs();
  CHECK_EQ(runs.size(), 2U);
  CHECK_EQ(runs[0].name(), "first run");
  const double steps = cyclesOf(report.execution().steps());
  CHECK_NEAR(steps, profile["executionProfile"]["simulation"]["cycles"].asDouble(),
             static_cast<double>(report.execution().steps().size()));
}

TEST(a_graph_profile_has_the_names_that_poplar_documents) {
  const Profiled p({});
  const auto profile = p.engine.getGraphProfile();
  const auto compilation = p.engine.getReport().compilation();
  const auto sets = compilation.computeSets();
  CHECK_EQ(profile["graph"]["numComputeSets"].asUint(), sets.size());
  CHECK_EQ(profile["graph"]["numVertices"].asUint(), compilation.graph().numVertices());
  const auto types = profile["vertexTypes"]["names"].size();
  CHECK(types >= 2);  // of the product and the sum
  CHECK_EQ(profile["memory"]["byVertexType"]["codeBytes"].size(), types);
  CHECK_EQ(profile["memory"]["byVertexType"]["vertexDataBytes"].size(), types);
  std::size_t executed = 0;
  for (std::size_t i = 0; i < sets.size(); ++i)
    CHECK_EQ(profile["computeSets"]["names"][i].asString(), sets[i].name());
  for (const auto& program : profile["programs"].asVector()) {
    if (program["type"].asString() != "OnTileExecute") continue;
    ++executed;
    CHECK_EQ(program["name"].asString(),
             profile["computeSets"]["names"][program["computeset"].asUint()].asString());
  }
  CHECK(executed >= sets.size());
  const auto target = profile["target"];
  CHECK_EQ(target["totalMemory"].asDouble(), 16 * target["bytesPerTile"].asDouble());
  const auto tiles = profile["memory"]["byTile"];
  for (const auto& tile : compilation.tiles()) {
    const auto memory = tile.memory().total();
    const auto at = tile.id();
    CHECK_EQ(tiles["total"][at].asDouble(), static_cast<double>(memory.excludingGaps()));
    CHECK_EQ(tiles["totalIncludingGaps"][at].asDouble(),
             static_cast<double>(memory.includingGaps()));
  }
}

TEST(programs_of_a_report_are_visited) {
  const Profiled p({});
  const auto report = p.engine.getReport(false);
  struct Visitor : pva::ProgramVisitor {
    int products = 0, repeats = 0;
    void visitOnTileExecute(const pva::OnTileExecuteProgram& program) override {
      products += program.name().find("product") != std::string::npos;
      CHECK(!program.vars().empty());
    }
    void visitRepeat(const pva::RepeatProgram& program) override {
      CHECK_EQ(program.children().size(), 1U);
      ++repeats;
    }
  };
  Visitor visitor;
  for (const auto& program : report.compilation().programs()) program->accept(visitor);
  CHECK(visitor.products >= 1);
  CHECK_EQ(visitor.repeats, 1);
  bool found = false;
  for (const auto& step : report.execution().steps())
    for (const auto& set : step.computeSets())
      if (set.name().find("sum") != std::string::npos) {
        found = true;
        CHECK_EQ(set.cyclesByTile().size(), 16U);
        CHECK(step.cyclesByTile()[0] >= 4 * set.cyclesByTile()[0]);
      }
  CHECK(found);
  const auto blocks = report.execution().blocks(3);
  CHECK_EQ(blocks.size(), report.execution().steps().size());
  CHECK_EQ(blocks[1].cyclesFrom(), blocks[0].cyclesTo());
  CHECK_EQ(blocks[1].tile(), 3U);
  CHECK(!report.compilation().livenessProgramSteps().empty());
  std::uint64_t live = 0;
  for (const auto& step : report.compilation().livenessProgramSteps())
    live = std::max(live, step.notAlwaysLiveMemory().bytes());
  CHECK(live < 1U << 20);
  CHECK_THROWS(report.compilation().graph().numEdges(), "needs edges");
}

/// Vertices of two types on two tiles, run three times, and a sum.
struct TwoTypes : Fixture {
  TwoTypes() : Fixture(8) {
    std::istringstream source(R"src(
#include <poplar/Vertex.hpp>
class First : public poplar::Vertex {
 public:
  poplar::Output<int> out;
  bool compute() { *out = 1; return true; }
};
class Second : public poplar::Vertex {
 public:
  poplar::Output<int> out;
  bool compute() { *out = 2; return true; }
};)src");
    graph.addCodelets(source);
    const auto set = graph.addComputeSet("set");
    const auto out = graph.addVariable(INT, {6});
    // Tile 1 has three of First, tile 2 one of First and two of Second.
    for (unsigned i = 0; i < 6; ++i) {
      const auto v = graph.addVertex(set, i < 4 ? "First" : "Second", {{"out", out[i]}});
      graph.setTileMapping(v, i < 3 ? 1 : 2);
      graph.setTileMapping(out[i], i < 3 ? 1 : 2);
    }
    prog.add(Repeat(2, Execute(set)));
    prog.add(Execute(set));
    popops::addInPlace(graph, out, out, prog, "sum");
  }
};

namespace {

/// Two named parts, one inside of the other, three times, then one of them again; with a stream.
struct NamedParts : Fixture {
  NamedParts() : Fixture(8) {
    const auto a = constant<float>({16}, std::vector<float>(16, 0.5F));
    const auto b = graph.clone(a);
    graph.setTileMapping(b, 3);
    Sequence sum, all;
    popops::addInPlace(graph, b, a, sum, "sum");
    const Block inner(sum, "inner");
    all.add(inner);
    popops::mulInPlace(graph, b, a, all, "product");
    prog.add(Copy(graph.addHostToDeviceFIFO("in", FLOAT, 16), b));
    prog.add(Repeat(3, Block(all, "outer 1")));
    prog.add(inner);
  }
  pva::Report report(const OptionFlags& options) {
    std::vector<float> values(16, 1.0F);
    Engine engine(graph, prog, options);
    engine.connectStream("in", values.data());
    engine.loadAndRun(device);
    return engine.getReport();
  }
};

std::string namesOf(const std::vector<pva::Block>& blocks) {
  std::string names;
  for (const auto& block : blocks) names += block.program()->name() + ";";
  return names;
}

}  // namespace

TEST(blocks_that_a_filter_names_are_told_once_for_each_execution) {
  NamedParts f;
  const auto report = f.report({{"profiler.blocks.filter", "outer.*|inner"}});
  const auto blocks = report.execution().blocks(0);
  CHECK_EQ(namesOf(blocks), "outer 1;inner;outer 1;inner;outer 1;inner;inner;");
  for (int i = 0; i < 6; i += 2) {
    CHECK(blocks[i].isCommon() && !blocks[i].isStreamCopy() && !blocks[i].isOverflow());
    CHECK(blocks[i].cyclesFrom() <= blocks[i + 1].cyclesFrom());
    CHECK(blocks[i].cyclesTo() > blocks[i + 1].cyclesTo());  // the product follows
    CHECK(blocks[i].cyclesTo() <= blocks[i + 2].cyclesFrom());
  }
  // Only one tile is reported, and a filter matches whole names.
  CHECK(report.execution().blocks(1).empty());
  CHECK_EQ(namesOf(f.report({{"profiler.blocks.filter", "inner"}, {"profiler.blocks.tile", "5"}})
                       .execution()
                       .blocks(5)),
           "inner;inner;inner;inner;");
  CHECK(f.report({{"profiler.blocks.filter", "inn"}}).execution().blocks(0).empty());
}

TEST(names_of_any_length_are_filtered) {
  NamedParts f;
  f.prog.add(Block(Repeat(2, Sequence()), std::string(1'000'000, 'x')));
  CHECK(f.report({{"profiler.blocks.filter", "(x|y)*"}}).execution().blocks(0).empty());
}

TEST(single_programs_and_copies_of_streams_are_blocks_by_option) {
  NamedParts f;
  const auto product = f.report({{"profiler.programs.filter", ".*product.*"}});
  const auto products = product.execution().blocks(0);
  CHECK_EQ(products.size(), 3U);
  CHECK_EQ(products[0].cyclesTo() - products[0].cyclesFrom(),
           products[2].cyclesTo() - products[2].cyclesFrom());
  const auto streams = f.report({{"profiler.programs.filter", "none of these"},
                                 {"debug.instrumentExternalExchange", "true"}});
  for (const std::size_t tile : {0, 3}) {
    const auto blocks = streams.execution().blocks(tile);
    CHECK_EQ(blocks.size(), 3U);
    CHECK(blocks[0].isStreamCopy() && !blocks[0].isCommon());
    CHECK(blocks[0].program()->type() == pva::Program::Type::StreamCopyBegin);
    CHECK(blocks[1].program()->type() == pva::Program::Type::StreamCopyMid);
    CHECK(blocks[2].program()->type() == pva::Program::Type::StreamCopyEnd);
    CHECK_EQ(blocks[0].cyclesTo(), blocks[1].cyclesFrom());
    CHECK_EQ(blocks[1].cyclesTo(), blocks[2].cyclesFrom());
  }
  CHECK_THROWS(f.report({{"profiler.blocks.filter", "(inner"}}), "needs a regular expression");
}

TEST(blocks_of_very_long_runs_end_in_one_that_says_so) {
  Fixture f(4);
  const auto a = f.constant<float>({4}, {1, 2, 3, 4});
  const auto b = f.graph.clone(a);
  Sequence sum;
  popops::addInPlace(f.graph, b, a, sum, "sum");
  f.prog.add(Repeat(1'200'000, Block(sum, "turn")));
  Engine engine(f.graph, f.prog, {{"profiler.blocks.filter", "turn"}});
  engine.loadAndRun(f.device);
  const auto blocks = engine.getReport().execution().blocks(0);
  CHECK_EQ(blocks.size(), (1U << 20) + 1);
  CHECK(blocks.back().isOverflow() && !blocks.back().isCommon());
  CHECK_EQ(blocks.back().cyclesFrom(), blocks[blocks.size() - 2].cyclesTo());
  const auto turn = blocks[0].cyclesTo() - blocks[0].cyclesFrom();
  CHECK_EQ(blocks.back().cyclesTo(), 1'200'000 * turn);
}

TEST(loops_whose_counts_are_data_run_as_often_as_they_did) {
  Fixture f;
  const auto turns = f.variable("turns", {}, INT);
  f.graph.setInitialValue(turns, 0);
  const auto most = f.variable("most", {}, INT);
  f.graph.createHostWrite("most", most);
  Sequence condition, body;
  const auto less = popops::lt(f.graph, turns, most, condition);
  popops::addInPlace(f.graph, turns, 1, body, "turn");
  f.prog.add(RepeatWhileTrue(condition, less, Block(body, "turns")));
  Engine engine(f.graph, f.prog, {{"profiler.blocks.filter", "turns"}});
  engine.load(f.device);
  const int thirty = 30;
  engine.writeTensor("most", &thirty, &thirty + 1);
  engine.run(0);
  engine.run(0);  // has reached it
  const auto report = engine.getReport();
  CHECK_EQ(report.execution().blocks(0).size(), 30U);
  const auto runs = report.execution().runs();
  CHECK_EQ(runs.size(), 2U);
  const auto profile = engine.getProfile();
  for (std::size_t i = 0; i < 2; ++i)
    CHECK_NEAR(cyclesOf(runs[i].steps()),
               profile["executionProfile"]["runs"][i]["cycles"].asDouble(), 2);
  CHECK(cyclesOf(runs[0].steps()) > 20 * cyclesOf(runs[1].steps()));
}

TEST(a_tile_is_told_the_blocks_of_its_own_ipu) {
  Fixture f(4, 2);
  const auto on = [&](unsigned tile, const char* name) {
    const auto t = f.graph.addVariable(FLOAT, {8}, name);
    f.graph.setTileMapping(t, tile);
    Sequence sum;
    popops::addInPlace(f.graph, t, t, sum, name);
    f.prog.add(Block(sum, name));
  };
  on(1, "first");
  on(5, "second");
  const auto names = [&](const OptionFlags& options, std::size_t tile) {
    Engine engine(f.graph, f.prog, options);
    engine.loadAndRun(f.device);
    std::string all;
    for (const auto& block : engine.getReport().execution().blocks(tile))
      all += block.program()->name() + ";";
    return all;
  };
  const OptionFlags filter{{"profiler.blocks.filter", "first|second"}};
  CHECK_EQ(names(filter, 0), "first;");
  CHECK_EQ(names(filter, 4), "second;");
  for (const std::size_t tile : {0, 4}) {
    const std::string all = names({}, tile);
    CHECK_EQ(all.find("first") != std::string::npos, tile == 0);
    CHECK_EQ(all.find("second") != std::string::npos, tile == 4);
  }
}

TEST(vertices_of_codelets_are_counted_by_tile_and_compute_set) {
  TwoTypes f;
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  const auto report = engine.getReport();
  const auto compilation = report.compilation();
  CHECK_EQ(compilation.graph().numVertices(), 8U);  // and the sum's on the two tiles
  const auto tiles = compilation.tiles();
  CHECK(tiles[0].memory().vertices().empty());
  const auto one = tiles[1].memory().vertices();
  CHECK_EQ(one.size(), 2U);
  CHECK_EQ(one[0].type().name(), "First");
  CHECK_EQ(one[0].count(), 3U);
  const auto two = tiles[2].memory().vertices();
  CHECK_EQ(two.size(), 3U);
  CHECK_EQ(two[1].type().name(), "Second");
  CHECK_EQ(two[0].count() * 10 + two[1].count(), 12U);
  int sets = 0;
  for (const auto& each : compilation.computeSets()) {
    if (each.vertices().size() != 2) continue;
    CHECK_EQ(each.vertices()[0].count() + each.vertices()[1].count(), 6U);
    ++sets;
  }
  CHECK(sets >= 1);
  const auto locations = engine.getSimulatedErrorLocations("set");
  CHECK(locations == (std::vector<ErrorLocation>{ErrorLocation(1), ErrorLocation(2)}));
  CHECK_THROWS(engine.getSimulatedErrorLocations("no set"), "got 'no set'");
}

TEST(profiles_and_drawings_name_vertices_and_library_functions) {
  TwoTypes f;
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  const auto profile = engine.getGraphProfile();
  CHECK_EQ(profile["graph"]["numVertices"].asUint(), 8U);
  CHECK_EQ(profile["vertexTypes"]["names"][1].asString(), "Second");
  const auto vertices = profile["computeSets"]["vertexCounts"].sum2DUint();
  CHECK(vertices >= 8 && vertices % 6 == 2);
  std::ostringstream summary, drawing;
  engine.printProfileSummary(summary);
  CHECK(summary.str().find("set: First (4), Second (2)") != std::string::npos);
  CHECK(summary.str().find("\n    sum: popops::BinaryOp1DInPlace<") != std::string::npos);
  f.graph.outputComputeGraph(drawing, {f.prog});
  const auto executed = drawing.str().find("-> cs0"), added = drawing.str().find("Execute sum");
  CHECK(drawing.str().find("\"set: 6 vertices\"") < executed && executed < added);
  CHECK(added != std::string::npos);
}

TEST(programs_that_compute_give_their_compute_set) {
  TwoTypes f;
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  engine.run(0);
  const auto report = engine.getReport();
  struct Visitor : pva::ProgramVisitor {
    std::uint64_t vertices = 0, compute = 0, exchange = 0;
    void visitOnTileExecute(const pva::OnTileExecuteProgram& program) override {
      const auto set = program.computeset();
      CHECK_EQ(set.name(), program.name());
      for (const auto& each : set.vertices()) vertices += each.count();
      compute += set.estimatedCyclesByTile().at(0);
    }
    void visitDoExchange(const pva::DoExchangeProgram& program) override {
      exchange += program.estimatedCyclesByTile().at(7);
    }
    void visitStreamCopyBegin(const pva::StreamCopyBeginProgram&) override { CHECK(false); }
  };
  Visitor visitor;
  std::uint64_t by_set = 0, cycles = 0;
  const auto steps = report.execution().steps();
  for (const auto& step : steps) {
    step.program()->accept(visitor);
    for (const auto& set : step.computeSets())
      for (const auto& each : set.vertices()) by_set += each.count();
    // Steps follow each other on one clock, through both runs.
    const auto active = step.ipus()[0].activeCycles();
    CHECK_EQ(active.cyclesFrom().min(), cycles);
    CHECK_EQ(active.cyclesTo().max(), cycles += step.ipus()[0].cycles());
  }
  CHECK(visitor.vertices > 6);
  CHECK_EQ(visitor.vertices, by_set);
  CHECK(visitor.compute > 0 && visitor.compute + visitor.exchange <= cycles);
  const auto second = report.execution().runs()[1].steps();
  CHECK_EQ(second[0].ipus()[0].activeCycles().cyclesFrom().max(), cycles / 2);
  const auto ipus = report.compilation().ipus();
  CHECK_EQ(ipus.size(), 1U);
  CHECK_EQ(ipus[0].tiles().size(), 8U);
  CHECK_EQ(ipus[0].tiles()[3].id(), 3U);
}

TEST(filters_of_an_altered_report_are_refused) {
  const std::string file = std::filesystem::temp_directory_path() /
                           ("ipujax-altered-" + std::to_string(getpid()) + ".pop");
  const auto open = [&](const std::string& filter) {
    std::ofstream(file) << "ipujax profile 1\n@profiler.blocks.filter " << filter << "\n\n";
    pva::openReport(file);
  };
  CHECK_THROWS(open("outer"), "the bytes end too early");  // no program follows it
  CHECK_THROWS(open("out("), "an altered one");
  CHECK_THROWS(open("[z-a]"), "an altered one");
  std::remove(file.c_str());
}

TEST(engines_leave_reports_where_they_are_asked_to) {
  const std::string folder = "/tmp/ipujax_pva_test";
  const std::string file = folder + "/profile.pop";
  std::remove(file.c_str());
  { const Profiled p({{"autoReport.directory", folder}}); }
  CHECK_THROWS(pva::openReport(file), "cannot be read");
  {
    Profiled p({{"autoReport.all", "true"}, {"autoReport.directory", folder}});
    CHECK_EQ(pva::openReport(file).execution().runs().size(), 2U);  // while the engine lives
    p.engine.run(0);
    CHECK_EQ(pva::openReport(file).execution().runs().size(), 3U);
  }
  CHECK_EQ(pva::openReport(file).execution().runs().size(), 3U);
  {
    Profiled p({{"autoReport.all", "true"},
                {"autoReport.directory", folder},
                {"autoReport.streamAtEachRun", "false"}});
    CHECK_EQ(pva::openReport(file).execution().runs().size(), 0U);
    CHECK_EQ(pva::openReport(file).compilation().target().numTiles(), 16U);
  }
  const auto report = pva::preview::openReport(file);
  CHECK_EQ(report.execution().runs().size(), 2U);
  CHECK_EQ(report.compilation().target().numTiles(), 16U);
  std::ofstream(file, std::ios::app) << "more";
  CHECK_THROWS(pva::openReport(file), "");
  std::ofstream(file) << "something";
  CHECK_THROWS(pva::openReport(file), "needs a report");
  std::remove(file.c_str());
}
