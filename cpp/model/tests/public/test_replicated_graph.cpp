#include <gcl/Collectives.hpp>
#include <numeric>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// Graph::createReplicatedGraph: equal parts of one program's tiles.
using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kParts = 4;
constexpr unsigned kTiles = 2;  // of a part
constexpr std::size_t kElements = 6;

struct Parts {
  Device device = Fixture::modelOf(kParts * kTiles, 1);
  Graph top{device};
  Graph graph = top.createReplicatedGraph(kParts);
  Sequence prog;

  Tensor variable(const char* name) {
    Tensor t = graph.addVariable(FLOAT, {kElements}, VariableMappingMethod::LINEAR, name);
    graph.createHostRead(name, t);
    graph.createHostWrite(name, t);
    return t;
  }
};

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::vector<float> read(Engine& engine, const char* name) {
  std::vector<float> values(kParts * kElements);
  engine.readTensor(name, values.data(), values.data() + values.size());
  return values;
}

}  // namespace

TEST(a_part_has_its_share_of_the_tiles) {
  Parts p;
  CHECK_EQ(p.graph.getTarget().getNumTiles(), kTiles);
  CHECK_EQ(p.graph.getReplicationFactor(), kParts);
  CHECK_EQ(p.graph.getTopLevelGraph().getReplicationFactor(), 1u);
  Tensor t = p.graph.addVariable(FLOAT, {kElements}, "t");
  p.graph.setTileMapping(t, 1);
  const Tensor all = p.top.getNonReplicatedTensor(t);
  CHECK(all.shape() == (std::vector<std::size_t>{kParts, kElements}));
  const auto mapping = p.top.getTileMapping(all);
  for (unsigned tile = 0; tile < kParts * kTiles; ++tile)
    CHECK_EQ(mapping[tile].size(), tile % kTiles == 1 ? 1u : 0u);
  CHECK_EQ(p.graph.createVirtualGraph(1, 2).getReplicationFactor(), kParts);
  CHECK_THROWS(p.top.createReplicatedGraph(3), "share evenly");
  CHECK_THROWS(p.graph.createReplicatedGraph(2), "of a replicated graph");
  CHECK_THROWS(p.graph.addRemoteBuffer("b", FLOAT, 1), "createReplicatedGraph did not make");
}

TEST(the_clone_of_a_tensor_of_the_parts_is_one_of_the_parts_whichever_graph_makes_it) {
  Parts p;
  const Tensor x = p.variable("x");
  for (const auto method : {TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                            TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES}) {
    const Tensor copy = p.top.clone(HALF, x.slice(1, 4), "copy", method);
    const Tensor all = p.top.getNonReplicatedTensor(copy);
    CHECK(all.shape() == (std::vector<std::size_t>{kParts, 3}));
    CHECK(p.top.getTileMapping(all) ==
          p.top.getTileMapping(p.top.getNonReplicatedTensor(x.slice(1, 4))));
  }
  const Tensor top = p.top.addVariable(FLOAT, {kElements}, VariableMappingMethod::LINEAR, "top");
  CHECK_EQ(p.top.getNonReplicatedTensor(p.top.clone(top)).dim(0), 1u);
}

TEST(programs_run_in_all_parts) {
  Parts p;
  const Tensor x = p.variable("x");
  const Tensor y = p.variable("y");
  p.graph.setInitialValue(y, 5.0f);
  const auto in = p.graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  const auto out = p.graph.addDeviceToHostFIFO("out", FLOAT, kElements);
  p.prog.add(Copy(in, x));
  Sequence body;
  popops::addInPlace(p.graph, x, y, body);
  p.prog.add(Repeat(3, body));
  p.prog.add(Copy(x, out));
  p.prog.add(PrintTensor("x", x.slice(0, 1)));
  Engine engine(p.top, p.prog);
  std::vector<float> from = counted(kParts * kElements);
  std::vector<float> to(from.size());
  std::ostringstream printed;
  engine.setPrintTensorStream(printed);
  engine.connectStream(in, from.data());
  engine.connectStream(out, to.data());
  engine.loadAndRun(p.device);
  for (std::size_t i = 0; i < to.size(); ++i) CHECK_EQ(to[i], from[i] + 15);
  CHECK(read(engine, "x") == to);
  CHECK_EQ(printed.str(),
           std::string("x: [[15.000000]\n [21.000000]\n [27.000000]\n [33.000000]]\n"));
  unsigned calls = 0;
  engine.connectStreamToCallback("in", 3, [&](void* p) {
    static_cast<float*>(p)[0] = 100;
    ++calls;
  });
  engine.run();
  CHECK_EQ(calls, 1u);
  CHECK_EQ(to[3 * kElements], 115.0f);
  CHECK_EQ(to[0], 15.0f);
}

TEST(the_top_level_graph_sees_all_parts_together) {
  Parts p;
  const Tensor x = p.variable("x");
  const Tensor sum = p.variable("sum");
  const Tensor all = p.top.getNonReplicatedTensor(x);
  Tensor total = popops::add(p.top, all[0], all[1], p.prog);
  for (unsigned part = 2; part < kParts; ++part)
    popops::addInPlace(p.top, total, all[part], p.prog);
  p.prog.add(Copy(total.expand({0}).broadcast(kParts, 0), p.top.getNonReplicatedTensor(sum)));
  Engine engine(p.top, p.prog);
  engine.load(p.device);
  const std::vector<float> from = counted(kParts * kElements);
  engine.writeTensor("x", from.data());
  engine.run();
  const auto sums = read(engine, "sum");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float e = static_cast<float>(i % kElements);
    CHECK_EQ(sums[i], 4 * e + (0 + 1 + 2 + 3) * static_cast<float>(kElements));
  }
}

TEST(broadcast_streams_and_constants_are_the_same_in_all_parts) {
  Parts p;
  const Tensor x = p.variable("x");
  const Tensor two = p.graph.addConstant(FLOAT, {kElements}, 2.0f);
  p.graph.setTileMapping(two, 0);
  const auto in =
      p.graph.addHostToDeviceFIFO("in", FLOAT, kElements, ReplicatedStreamMode::BROADCAST);
  p.prog.add(Copy(in, x));
  popops::mulInPlace(p.graph, x, two, p.prog);
  Engine engine(p.top, p.prog);
  std::vector<float> from = counted(kElements);
  engine.connectStream(in, from.data(), from.data() + from.size());
  engine.loadAndRun(p.device);
  const auto x_read = read(engine, "x");
  for (std::size_t i = 0; i < x_read.size(); ++i) CHECK_EQ(x_read[i], 2 * from[i % kElements]);
}

TEST(all_parts_take_the_time_of_one) {
  const auto cycles = [](unsigned parts) {
    Device device = Fixture::modelOf(parts * kTiles, 1);
    Graph top(device);
    Graph graph = top.createReplicatedGraph(parts);
    const Tensor x = graph.addVariable(FLOAT, {100}, VariableMappingMethod::LINEAR);
    graph.setInitialValue(x, 1.0f);
    Sequence prog;
    popops::mulInPlace(graph, x, x, prog);
    Engine engine(top, prog);
    engine.load(device);
    engine.run();
    return engine.getExecutionProfile()["simulation"]["cycles"].asDouble();
  };
  CHECK(cycles(1) > 0);
  CHECK_EQ(cycles(4), cycles(1));
}

TEST(what_parts_cannot_do_is_refused) {
  Parts p;
  const Tensor x = p.variable("x");
  const Tensor outside = p.top.addVariable(FLOAT, {kElements}, VariableMappingMethod::LINEAR);
  CHECK_THROWS(Engine(p.top, Copy(x, outside)), "getNonReplicatedTensor");
  Sequence meet;
  gcl::allReduceInPlaceCrossReplica(p.graph, x, gcl::CollectiveOperator::ADD, meet);
  CHECK_THROWS(Engine(p.top, meet), "replication_factor");
}
