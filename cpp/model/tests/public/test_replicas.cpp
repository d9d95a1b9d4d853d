#include <gcl/Collectives.hpp>
#include <map>
#include <numeric>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <popops/Cast.hpp>
#include <popops/Collectives.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>
#include <stdexcept>

#include "Check.hpp"
#include "Fixture.hpp"

/// Programs of several replicas, run by an Engine.
using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kReplicas = 3;
constexpr std::size_t kElements = 4;

struct Replicated {
  Device device = Fixture::modelOf(8, kReplicas);
  Graph graph{device, replication_factor(kReplicas)};
  Sequence prog;
  Tensor x = variable("x");
  Tensor index = graph.addReplicationIndexConstant();

  Tensor variable(const char* name) {
    Tensor t = graph.addVariable(FLOAT, {kElements}, VariableMappingMethod::LINEAR, name);
    graph.createHostRead(name, t);
    graph.createHostWrite(name, t);
    return t;
  }
  Engine start() {
    Engine engine(graph, prog);
    engine.load(device);
    return engine;
  }
};

std::vector<float> counted(std::size_t n, float first = 0) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::vector<float> read(Engine& engine, const char* name) {
  std::vector<float> values(kReplicas * kElements);
  engine.readTensor(name, values.data(), values.data() + values.size());
  return values;
}

}  // namespace

TEST(each_replica_has_its_own_variables_and_its_share_of_a_stream) {
  Replicated r;
  const auto in = r.graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  const auto out = r.graph.addDeviceToHostFIFO("out", FLOAT, kElements);
  const Tensor y = r.variable("y");
  r.prog.add(Copy(in, r.x));
  const Tensor number = popops::cast(r.graph, r.index, FLOAT, r.prog);
  popops::addInPlace(r.graph, r.x, number, r.prog);
  popops::addInPlace(r.graph, r.x, y, r.prog);
  r.prog.add(Copy(r.x, out));
  Engine engine = r.start();
  std::vector<float> from = counted(kReplicas * kElements);
  std::vector<float> to(from.size());
  const std::vector<float> added = counted(from.size(), 100);
  engine.writeTensor("y", added.data(), added.data() + added.size());
  engine.connectStream(in, from.data());
  engine.connectStream(out, to.data(), to.data() + to.size());
  CHECK_THROWS(engine.connectStream(out, to.data(), to.data() + kElements), "48 bytes");
  engine.run();
  for (std::size_t i = 0; i < to.size(); ++i)
    CHECK_EQ(to[i], from[i] + static_cast<float>(i / kElements) + added[i]);
  CHECK(read(engine, "x") == to);
}

TEST(memory_of_several_blocks_is_walked_in_each_share) {
  Replicated r;
  const auto in = r.graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  const Tensor block = r.variable("block");
  r.graph.setInitialValue(r.x, 0.0f);
  Sequence body{Copy(in, block)};
  popops::addInPlace(r.graph, r.x, block, body);
  r.prog.add(Repeat(2, body));
  Engine engine = r.start();
  std::vector<float> from = counted(2 * kReplicas * kElements);
  engine.connectStream("in", from.data(), from.data() + from.size());
  engine.run();
  const auto x = read(engine, "x");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t first = i / kElements * 2 * kElements + i % kElements;
    CHECK_EQ(x[i], from[first] + from[first + kElements]);
  }
}

TEST(a_broadcast_stream_gives_all_replicas_the_same_blocks) {
  Replicated r;
  const auto in =
      r.graph.addHostToDeviceFIFO("in", FLOAT, kElements, ReplicatedStreamMode::BROADCAST);
  const Tensor block = r.variable("block");
  r.graph.setInitialValue(r.x, 0.0f);
  Sequence body{Copy(in, block)};
  popops::addInPlace(r.graph, r.x, block, body);
  r.prog.add(Repeat(3, body));
  Engine engine = r.start();
  std::vector<float> values = counted(3 * kElements);
  engine.connectStream(in, values.data(), values.data() + values.size());
  engine.run();
  for (std::size_t i = 0; i < kReplicas * kElements; ++i)
    CHECK_EQ(read(engine, "x")[i], 3.0f * static_cast<float>(i % kElements + kElements));

  unsigned calls = 0;
  engine.connectStreamToCallback(in, [&](void* p) {
    for (std::size_t i = 0; i < kElements; ++i)
      static_cast<float*>(p)[i] = static_cast<float>(calls);
    ++calls;
  });
  engine.load(r.device);
  engine.run();
  CHECK_EQ(calls, 3u);  // once for each block, not for each replica
  for (const float x : read(engine, "x")) CHECK_EQ(x, 3.0f);
  CHECK_THROWS(engine.connectStreamToCallback("in", 1, [](void*) {}), "broadcast");
}

TEST(each_replica_has_its_callbacks_and_host_functions) {
  Replicated r;
  const auto in = r.graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  const auto out = r.graph.addDeviceToHostFIFO("out", FLOAT, kElements);
  const HostFunction f = r.graph.addHostFunction("f", {{FLOAT, kElements}}, {{FLOAT, kElements}});
  r.prog.add(Sequence(Copy(in, r.x), Call(f, {r.x}, {r.x}), Copy(r.x, out)));
  Engine engine = r.start();
  CHECK(engine.listStreams() == (std::vector<std::string>{"in", "out"}));
  std::map<unsigned, float> arrived;
  for (unsigned i = 0; i < kReplicas; ++i) {
    engine.connectStreamToCallback("in", i, [i](void* p) {
      for (std::size_t e = 0; e < kElements; ++e) static_cast<float*>(p)[e] = static_cast<float>(i);
    });
    engine.connectStreamToCallback("out", i,
                                   [&, i](void* p) { arrived[i] = static_cast<float*>(p)[2]; });
    engine.connectHostFunction("f", i, [i](ArrayRef<const void*> ins, ArrayRef<void*> outs) {
      for (std::size_t e = 0; e < kElements; ++e)
        static_cast<float*>(outs[0])[e] =
            static_cast<const float*>(ins[0])[e] + 10.0f * static_cast<float>(i + 1);
    });
  }
  engine.run();
  for (unsigned i = 0; i < kReplicas; ++i)
    CHECK_EQ(arrived[i], 10.0f * static_cast<float>(i + 1) + static_cast<float>(i));
  CHECK_THROWS(engine.connectStreamToCallback("in", kReplicas, [](void*) {}), "one of 3 replicas");
  CHECK_THROWS(
      engine.connectHostFunction("f", kReplicas, [](ArrayRef<const void*>, ArrayRef<void*>) {}),
      "one of 3 replicas");
}

TEST(a_replica_whose_stream_is_not_connected_is_named) {
  Replicated r;
  const auto in = r.graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  r.prog.add(Copy(in, r.x));
  Engine engine = r.start();
  engine.connectStreamToCallback("in", 0, [](void*) {});
  CHECK_THROWS(engine.run(), "'in' of replica 1");
}

TEST(remote_buffers_are_each_replicas_own) {
  Replicated r;
  const RemoteBuffer buffer = r.graph.addRemoteBuffer("buffer", FLOAT, kElements, 2);
  const Tensor at = r.graph.addConstant<unsigned>(UNSIGNED_INT, {1}, 1u);
  const Tensor last = r.graph.addConstant<unsigned>(UNSIGNED_INT, {1}, 0u);
  r.prog.add(Copy(buffer, r.x, at));
  popops::mulInPlace(r.graph, r.x, 2.0f, r.prog);
  r.prog.add(Copy(r.x, buffer, last));
  Engine engine = r.start();
  for (unsigned i = 0; i < kReplicas; ++i) {
    const auto values = counted(kElements, 10.0f * static_cast<float>(i));
    engine.copyToRemoteBuffer(values.data(), buffer, 1, i);
  }
  engine.run();
  for (unsigned i = 0; i < kReplicas; ++i) {
    std::vector<float> got(kElements);
    engine.copyFromRemoteBuffer(buffer, got.data(), 0, i);
    CHECK_EQ(got[3], 2 * (10.0f * static_cast<float>(i) + 3));
  }
  CHECK_THROWS(engine.copyToRemoteBuffer(nullptr, buffer, 0, kReplicas), "one of 3 replicas");
}

TEST(replicas_meet_in_collectives_and_copies) {
  Replicated r;
  const Tensor sum = gcl::allReduceCrossReplica(r.graph, r.x, gcl::CollectiveOperator::ADD, r.prog);
  r.graph.createHostRead("sum", sum);
  const Tensor moved = r.variable("moved");
  r.prog.add(CrossReplicaCopy(r.x, moved, {{0, 1}, {1, 2}, {2, 0}}));
  Engine engine = r.start();
  const std::vector<float> from = counted(kReplicas * kElements);
  engine.writeTensor("x", from.data());
  engine.run();
  const auto summed = read(engine, "sum");
  const auto copied = read(engine, "moved");
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t e = i % kElements;
    CHECK_EQ(summed[i], from[e] + from[e + kElements] + from[e + 2 * kElements]);
    CHECK_EQ(copied[(i + kElements) % from.size()], from[i]);
  }
}

TEST(reduce_scatter_gives_parts_of_each_ipu) {
  constexpr unsigned kTiles = 2, kIpus = 2;
  Device device = Fixture::modelOf(kTiles, kReplicas * kIpus);
  Graph graph(device, replication_factor(kReplicas));
  const Tensor x = graph.addVariable(UNSIGNED_INT, {6});
  // IPU 0 has elements 1 to 5, IPU 1 element 0.
  graph.setTileMapping(x.slice(1, 3), 1);
  graph.setTileMapping(x.slice(3, 6), 0);
  graph.setTileMapping(x.slice(0, 1), kTiles);
  graph.setInitialValue(x, ArrayRef<unsigned>({10, 11, 12, 13, 14, 15}));
  Sequence prog;
  const Tensor out = popops::replicatedReduceScatter(graph, x, popops::Operation::ADD, prog);
  CHECK(out.shape() == (std::vector<std::size_t>{3}));
  const auto mapping = graph.getTileMapping(out);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& interval : mapping[tile])
      CHECK_EQ(tile / kTiles, interval.begin() < 2 ? 0u : 1u);
  graph.createHostRead("out", out);
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  std::vector<unsigned> got(3 * kReplicas);
  engine.readTensor("out", got.data(), got.data() + got.size());
  CHECK(got == (std::vector<unsigned>{33, 36, 30, 39, 42, 0, 45, 0, 0}));
}

TEST(an_error_of_one_replica_ends_the_run_and_the_next_one_works) {
  Replicated r;
  const auto in = r.graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  r.prog.add(Copy(in, r.x));
  const Tensor stops = popops::gt(r.graph, r.x[0], 99.0f, r.prog);
  r.prog.add(AbortOnCondition(stops, "too large"));
  const Tensor sum = gcl::allReduceCrossReplica(r.graph, r.x, gcl::CollectiveOperator::ADD, r.prog);
  r.graph.createHostRead("sum", sum);
  Engine engine = r.start();
  std::vector<float> from(kReplicas * kElements, 1.0f);
  from[2 * kElements] = 100;
  engine.connectStream(in, from.data());
  CHECK_THROWS(engine.run(), "too large");
  from[2 * kElements] = 1;
  engine.run();
  CHECK_EQ(read(engine, "sum")[0], 3.0f);
  engine.connectStreamToCallback("in", 1, [](void*) { throw std::runtime_error("no more data"); });
  CHECK_THROWS(engine.run(), "no more data");
  engine.connectStream(in, from.data());
  engine.run();
  CHECK_EQ(read(engine, "sum")[1], 3.0f);
}

TEST(a_condition_around_a_collective_must_be_equal_on_all_replicas) {
  Replicated r;
  const Tensor is_last = popops::eq(r.graph, r.index, 2u, r.prog);
  Sequence meet;
  gcl::allReduceInPlaceCrossReplica(r.graph, r.x, gcl::CollectiveOperator::ADD, meet);
  r.prog.add(If(is_last, meet, Sequence()));
  Engine engine = r.start();
  try {
    engine.run();
    CHECK(false);
  } catch (const application_runtime_error& error) {
    CHECK(std::string(error.what()).find("same way around a collective") != std::string::npos);
  }
}

TEST(replicas_print_in_their_order_and_survive_serialisation) {
  Replicated r;
  r.prog.add(PrintTensor("index", r.index));
  std::stringstream file;
  compileGraph(r.graph, {r.prog}).serialize(file);
  Engine engine(Executable::deserialize(file));
  std::ostringstream printed;
  engine.setPrintTensorStream(printed);
  engine.loadAndRun(r.device);
  CHECK_EQ(printed.str(), std::string("index: 0\nindex: 1\nindex: 2\n"));
  CHECK_EQ(engine.getGraphProfile()["target"]["numReplicas"].asUint(), kReplicas);
}

TEST(a_replica_costs_what_a_program_of_one_replica_costs) {
  const auto cycles = [](unsigned replicas) {
    Device device = Fixture::modelOf(8, replicas);
    Graph graph(device, replication_factor(replicas));
    CHECK_EQ(graph.getReplicationFactor(), replicas);
    const Tensor x = graph.addVariable(FLOAT, {1000}, VariableMappingMethod::LINEAR);
    graph.setInitialValue(x, 1.0f);
    Sequence prog;
    popops::mulInPlace(graph, x, x, prog);
    Engine engine(graph, Repeat(5, prog));
    engine.load(device);
    engine.run();
    return engine.getExecutionProfile()["simulation"]["cycles"].asDouble();
  };
  CHECK(cycles(1) > 0);
  CHECK_EQ(cycles(4), cycles(1));
}
