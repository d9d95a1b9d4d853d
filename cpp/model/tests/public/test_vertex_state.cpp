#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/replication_factor.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

// Fields of vertices keep the values that a codelet writes until it runs again.

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr const char* kCounters = R"(
#include <poplar/Vertex.hpp>
using namespace poplar;
class Counter : public Vertex {
 public:
  Output<float> out;
  Vector<int> history;
  int count;
  unsigned steps = 2;
  bool compute() {
    for (unsigned i = history.size() - 1; i > 0; --i) history[i] = history[i - 1];
    history[0] = count;
    count += steps;
    *out = count + 1000.0f * history[1];
    return true;
  }
};
template <class T>
class Plain : public Vertex {
 public:
  Output<T> out;
  T first;
  bool compute() {
    T value = first;
    ++value;
    *out = value;
    return true;
  }
};
template class Plain<int>;
class Turns : public MultiVertex {
 public:
  Output<Vector<unsigned>> out;
  unsigned short turn;
  bool compute(unsigned worker) {
    ++turn;
    out[worker] = turn;
    return true;
  }
};
)";

struct Counters : Fixture {
  explicit Counters(unsigned tiles = 4) : Fixture(tiles) {
    std::istringstream source(kCounters);
    graph.addCodelets(source);
  }
  /// Two on different tiles, which begin at 10 and 20.
  ComputeSet counters(const Tensor& out) {
    const ComputeSet set = graph.addComputeSet("count");
    for (unsigned i = 0; i < 2; ++i) {
      const auto v = graph.addVertex(set, "Counter", {{"out", out[i]}});
      graph.setInitialValue(v["count"], 10 * (i + 1));
      graph.setFieldSize(v["history"], 2);
      graph.setTileMapping(v, i);
    }
    return set;
  }
};

}  // namespace

TEST(fields_keep_what_codelets_write_from_step_to_step_and_run_to_run) {
  Counters f;
  const Tensor out = f.variable("out", {2});
  const ComputeSet set = f.counters(out);
  const Sequence once{Execute(set)};
  const Repeat twice(2, Execute(set));
  Engine engine(f.graph, {once, Sequence{twice, Execute(set)}});
  engine.load(f.device);
  engine.run(0);
  CHECK((f.read(engine, "out", 2) == std::vector<float>{12, 22}));
  engine.run(1);  // the same vertices in another program, and twice in it
  CHECK((f.read(engine, "out", 2) == std::vector<float>{14018, 24028}));
  engine.run(0);
  CHECK((f.read(engine, "out", 2) == std::vector<float>{16020, 26030}));
  engine.load(f.device);  // writes the initial values again
  engine.run(0);
  CHECK((f.read(engine, "out", 2) == std::vector<float>{12, 22}));
}

TEST(an_executable_that_was_saved_keeps_fields) {
  Counters f;
  const Tensor out = f.variable("out", {2});
  std::stringstream file;
  compileGraph(f.graph, {Execute(f.counters(out))}).serialize(file);
  Engine engine(Executable::deserialize(file));
  engine.load(f.device);
  for (int i = 0; i < 3; ++i) engine.run(0);
  CHECK((f.read(engine, "out", 2) == std::vector<float>{12016, 22026}));
}

TEST(replicas_keep_fields_of_their_own) {
  IPUModel model;
  model.tilesPerIPU = 2;
  model.numIPUs = 2;
  const Device device = model.createDevice();
  Graph graph(device, replication_factor(2));
  std::istringstream source(kCounters);
  graph.addCodelets(source);
  const Tensor out = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR);
  const ComputeSet set = graph.addComputeSet("count");
  const auto v = graph.addVertex(set, "Counter", {{"out", out[0]}});
  graph.setInitialValue(v["count"], 1);
  graph.setFieldSize(v["history"], 2);
  graph.setTileMapping(v, 0);
  const Tensor replica = graph.addReplicationIndexConstant();
  graph.setTileMapping(replica, 0);
  const auto to_host = graph.addDeviceToHostFIFO("out", FLOAT, 1);
  // The second replica runs them once more.
  Engine engine(graph,
                Sequence{Execute(set), Switch(replica, {{1, Execute(set)}}), Copy(out, to_host)});
  float host[2] = {};
  for (unsigned r = 0; r < 2; ++r) {
    engine.connectStreamToCallback(
        "out", r, [&host, r](void* p) { host[r] = *static_cast<const float*>(p); });
  }
  engine.load(device);
  engine.run(0);
  engine.run(0);
  CHECK_EQ(host[0], 1005.0F);
  CHECK_EQ(host[1], 5009.0F);
}

TEST(workers_of_a_vertex_share_the_fields_that_it_keeps) {
  Counters f;
  const Tensor out = f.variable("out", {6}, UNSIGNED_INT);
  const ComputeSet set = f.graph.addComputeSet("turns");
  const auto v = f.graph.addVertex(set, "Turns", {{"out", out}});
  f.graph.setInitialValue(v["turn"], 100);
  f.graph.setTileMapping(v, 0);
  Engine engine(f.graph, Execute(set));
  engine.load(f.device);
  engine.run(0);
  engine.run(0);
  unsigned sum = 0;
  for (const unsigned turn : f.read<unsigned>(engine, "out", 6)) sum += turn;
  CHECK_EQ(sum, 107U + 108 + 109 + 110 + 111 + 112);
}

TEST(fields_that_codelets_only_read_take_no_variable) {
  Counters f;
  const Tensor out = f.variable("out", {}, INT);
  const ComputeSet set = f.graph.addComputeSet("plain");
  const auto v = f.graph.addVertex(set, "Plain<int>", {{"out", out}});
  f.graph.setInitialValue(v["first"], 6);
  f.graph.setTileMapping(v, 0);
  const auto before = f.graph.getNumVars();
  Engine engine(f.graph, Repeat(3, Execute(set)));
  engine.load(f.device);
  engine.run(0);
  CHECK_EQ(f.read<int>(engine, "out", 1)[0], 7);
  const auto plain = f.graph.getNumVars() - before;
  const Tensor outs = f.variable("outs", {2});
  const ComputeSet counters = f.counters(outs);
  const auto then = f.graph.getNumVars();
  const Engine counting(f.graph, Execute(counters));
  CHECK(f.graph.getNumVars() - then > plain);
}

TEST(names_of_fields_may_have_dollars) {
  Fixture f;
  std::istringstream source(R"src(
#include <poplar/Vertex.hpp>
    class Split : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<int>> in$0;
      poplar::Input<poplar::Vector<int>> in$1;
      poplar::Output<poplar::Vector<int>> out;
      bool compute() {
        for (unsigned i = 0; i < out.size(); ++i) out[i] = in$0[i] - in$1[i];
        return true;
      }
    };)src");
  f.graph.addCodelets(source);
  const Tensor out = f.graph.addVariable(INT, {2});
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, "Split");
  f.graph.connect(v["in$0"], f.constant<int>({2}, {9, 7}));
  f.graph.connect(v["in$1"], f.constant<int>({2}, {4, 5}));
  f.graph.connect(v["out"], out);
  f.graph.setTileMapping(v, 1);
  f.graph.setTileMapping(out, 1);
  f.prog.add(Execute(cs));
  CHECK(f.run<int>(out) == (std::vector<int>{5, 2}));
}
