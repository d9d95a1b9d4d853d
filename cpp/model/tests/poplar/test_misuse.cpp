// Misused handles: each misuse throws one of Poplar's exceptions.
#include <cstring>
#include <sstream>

#include "Check.hpp"
#include "poplar/Program.hpp"
#include "popops/ElementWise.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

/// A variable of four floats on tile 0.
Tensor fourOf(Graph& graph) {
  const Tensor t = graph.addVariable(FLOAT, {4}, "t");
  graph.setTileMapping(t, 0);
  return t;
}

struct Loaded {
  explicit Loaded(OnDevice& d) : engine(d.graph, d.prog) {
    engine.load(Device(d.graph.getTarget()));
  }
  Engine engine;
};

}  // namespace

TEST(what_was_moved_from_is_named) {
  OnDevice d;
  const Tensor t = fourOf(d.graph);
  Engine engine(d.graph, d.prog);
  Executable executable = compileGraph(d.graph, {d.prog});
  const Graph graph = std::move(d.graph);
  CHECK_THROWS(d.graph.addVariable(FLOAT, {4}), "[Graph] needs what it was made with");
  CHECK_THROWS(popops::add(d.graph, t, t, d.prog), "moved from");
  CHECK_THROWS(d.graph.getReplicationFactor(), "moved from");
  CHECK_THROWS(Engine(d.graph, d.prog), "moved from");
  const Engine moved = std::move(engine);
  CHECK_THROWS(engine.load(Device(graph.getTarget())), "[Engine] needs what it was made with");
  CHECK_THROWS(engine.run(0), "moved from");
  const Executable other = std::move(executable);
  std::ostringstream out;
  CHECK_THROWS(Engine{executable}, "[Executable] needs what it was made with");
  CHECK_THROWS(executable.serialize(out), "moved from");
}

TEST(tensors_of_no_graph_or_another_are_refused) {
  OnDevice d, other;
  const Tensor empty, t = fourOf(other.graph);
  CHECK_THROWS(d.graph.setTileMapping(empty, 0), "an empty Tensor");
  CHECK_THROWS(d.graph.setTileMapping(t, 0), "needs a tensor of this graph; got one of another");
  CHECK_THROWS(d.graph.setTileMapping(t, Graph::TileToTensorMapping(1)), "one of another");
  CHECK_THROWS(d.graph.createHostRead("t", t), "one of another");
  CHECK_THROWS(d.graph.createHostWrite("t", empty), "an empty Tensor");
  CHECK_THROWS(program::PrintTensor(empty), "an empty Tensor");
  CHECK_THROWS(program::WriteUndef(empty), "an empty Tensor");
  const DataStream stream = d.graph.addHostToDeviceFIFO("in", FLOAT, 4);
  CHECK_THROWS(Copy(stream, t), "the stream 'in' of another");
  popops::addInPlace(other.graph, t, t, other.prog);
  CHECK_THROWS(Engine(d.graph, other.prog), "needs programs of tensors of this graph");
}

TEST(what_cannot_be_written_is_a_compilation_error) {
  OnDevice d;
  const Tensor t = fourOf(d.graph), constant = d.graph.addConstant(FLOAT, {4}, 1.0f, "one");
  d.graph.setTileMapping(constant, 0);
  const auto message = [&](const Tensor& to, const char* name) -> std::string {
    try {
      const Engine engine(d.graph, Copy(t, to, false, name));
    } catch (const graph_program_compilation_error& e) {
      return e.what();
    }
    return "it compiled";
  };
  CHECK_EQ(
      message(constant, "fill"),
      "[compileGraph] needs programs that write to no constant; got 'fill', which writes to the "
      "constant 'one' (float {4}). Write to a variable (Graph::addVariable).");
  CHECK_EQ(message(t.slice(0, 1).broadcast(4, 0), "spread"),
           "[compileGraph] needs programs that write to no element twice; got 'spread', which "
           "writes to repeated elements of the tensor 't' (float {4}). Write to the tensor before "
           "it is broadcast.");
}

TEST(a_program_that_an_engine_lacks_is_told_with_their_number) {
  OnDevice d;
  const std::vector<Program> both{d.prog, d.prog};
  Engine one(d.graph, d.prog), two(d.graph, both);
  for (Engine* engine : {&one, &two}) engine->load(Device(d.graph.getTarget()));
  two.run(1);
  CHECK_THROWS(one.run(7),
               "needs a program below 1, the number of programs that the engine has; got 7");
  CHECK_THROWS(two.run(2),
               "needs a program below 2, the number of programs that the engine has; got 2");
}

TEST(shapes_beyond_all_memory_are_refused) {
  OnDevice d;
  const Tensor t = fourOf(d.graph);
  const std::size_t large = std::size_t{1} << 33;
  CHECK_THROWS(d.graph.addVariable(FLOAT, {large, large}), "fewer than 2^63 elements");
  CHECK_THROWS(t.slice(0, 0).reshape({large, large}), "fewer than 2^63 elements");
  CHECK_THROWS(t.broadcast(~0u, 0).broadcast(~0u, 0).numElements(), "fewer than 2^63 elements");
  CHECK_EQ(t.slice(0, 0).reshape({large, 0, large}).numElements(), 0u);
}

TEST(host_ends_without_memory_are_refused) {
  OnDevice d;
  CHECK_THROWS(d.graph.addConstant(FLOAT, {4}, static_cast<const float*>(nullptr)), "null pointer");
  const Tensor t = fourOf(d.graph);
  d.prog.add(Copy(d.graph.addHostToDeviceFIFO("in", FLOAT, 4), t));
  Loaded loaded(d);
  float values[8] = {};
  CHECK_THROWS(loaded.engine.connectStream("in", values + 8, values), "got 0");
  CHECK_THROWS(loaded.engine.connectStreamToCallback("in", std::unique_ptr<StreamCallback>()),
               "needs a callback for 'in'; got null");
}

TEST(engines_run_one_program_at_a_time) {
  OnDevice d;
  const Tensor t = fourOf(d.graph);
  d.graph.createHostRead("t", t);
  d.prog.add(Copy(d.graph.addHostToDeviceFIFO("in", FLOAT, 4), t));
  Loaded loaded(d);
  Engine& engine = loaded.engine;
  bool fails = true;
  engine.connectStreamToCallback("in", [&](void* to) {
    if (fails) engine.run(0);
    const float values[] = {1, 2, 3, 4};
    std::memcpy(to, values, sizeof(values));
  });
  CHECK_THROWS(engine.run(0), "needs the program that runs to end first");
  fails = false;
  engine.run(0);
  float got[4] = {};
  engine.readTensor("t", got, got + 4);
  CHECK_EQ(got[3], 4.0f);
}

TEST(devices_of_another_size_are_refused) {
  OnDevice d;
  Engine engine(d.graph, d.prog);
  CHECK_THROWS(engine.load(Device::createCPUDevice()), "needs a device of the graph's target");
  Device device(d.graph.getTarget());
  const Device moved = std::move(device);
  engine.load(device);
}

TEST(folders_are_no_codelets) {
  OnDevice d;
  CHECK_THROWS(d.graph.addCodelets("/"), "needs a file that can be read");
}

TEST(programs_nested_deeply_are_errors) {
  OnDevice d;
  Program sequences = Sequence(), repeats = Sequence();
  for (int i = 0; i < 100'000; ++i) {
    sequences = Sequence({sequences});
    repeats = Repeat(1, repeats);
  }
  std::ostringstream out;
  for (const Program* deep : {&sequences, &repeats}) {
    CHECK_THROWS(compileGraph(d.graph, {*deep}), "nested at most 2000 deep");
    CHECK_THROWS(dumpProgram(d.graph, *deep, out), "nested at most 2000 deep");
  }
  Program within = Sequence();
  for (int i = 0; i < 1'900; ++i) within = Repeat(1, within);
  Engine(d.graph, within).load(Device(d.graph.getTarget()));
}

TEST(programs_within_one_another_are_errors) {
  OnDevice d;
  Sequence first, second;
  first.add(second);
  second.add(first);
  CHECK_THROWS(compileGraph(d.graph, {first}), "one within itself");
}
