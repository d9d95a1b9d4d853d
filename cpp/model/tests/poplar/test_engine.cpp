#include <cstring>
#include <sstream>

#include "Check.hpp"
#include "engine/build/Build.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "popops/ElementWise.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

/// out = in * 2 + 1 on streams, with a loop of `count` rounds.
struct Doubler {
  Graph graph{IPUModel().createDevice()};
  Tensor x = graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "x");
  Sequence prog;

  explicit Doubler(unsigned count) {
    const auto in = graph.addHostToDeviceFIFO("in", FLOAT, 4);
    const auto out = graph.addDeviceToHostFIFO("out", FLOAT, 4);
    prog.add(Copy(in, x));
    Sequence body;
    const Tensor twice = popops::add(graph, x, x, body, "twice");
    body.add(Copy(twice, x));
    prog.add(Repeat(count, body));
    prog.add(Copy(x, out));
  }
};

}  // namespace

TEST(streams_and_repeat) {
  Doubler d(3);
  Engine engine(d.graph, d.prog);
  std::vector<float> in{1, 2, 3, 4};
  std::vector<float> out(4);
  engine.connectStream("in", in.data());
  engine.connectStream("out", out.data());
  engine.load(Device(d.graph.getTarget()));
  engine.run(0);
  CHECK_EQ(out[3], 32.0f);
  CHECK_THROWS(engine.connectStream("nothing", in.data()), "nothing");
}

TEST(a_run_before_load_and_without_streams_is_refused) {
  Doubler d(1);
  Engine engine(d.graph, d.prog);
  CHECK_THROWS(engine.run(0), "load");
  engine.load(Device(d.graph.getTarget()));
  CHECK_THROWS(engine.run(0), "connectStream");
}

TEST(executable_survives_serialisation) {
  Doubler d(2);
  std::stringstream bytes;
  compileGraph(d.graph, {d.prog}).serialize(bytes);
  Engine engine(Executable::deserialize(bytes));
  std::vector<float> in{1, 2, 3, 4};
  std::vector<float> out(4);
  engine.connectStream("in", in.data());
  engine.connectStream("out", out.data());
  engine.load(Device(d.graph.getTarget()));
  engine.run(0);
  CHECK_EQ(out[0], 4.0f);
}

TEST(cut_or_altered_executables_are_told) {
  Doubler d(1);
  std::stringstream stream;
  compileGraph(d.graph, {d.prog}).serialize(stream);
  const std::string bytes = stream.str();
  for (const std::size_t keep :
       {std::size_t{0}, std::size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
    std::stringstream cut(bytes.substr(0, keep));
    CHECK_THROWS(Executable::deserialize(cut), "Executable");
  }
  std::string altered = bytes;
  altered[altered.size() - 9] ^= 1;
  std::stringstream in(altered);
  CHECK_THROWS(Executable::deserialize(in), "checksum");
}

TEST(while_if_and_switch) {
  Graph graph{Target()};
  const Tensor i = graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "i");
  const Tensor kind = graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "kind");
  const Tensor limit = graph.addConstant<int>(INT, {}, 5);
  const Tensor one = graph.addConstant<int>(INT, {}, 1);
  const Tensor ten = graph.addConstant<int>(INT, {}, 10);
  const Tensor go = graph.addVariable(BOOL, {}, VariableMappingMethod::LINEAR, "go");
  graph.setInitialValue<int>(i, 0);
  graph.setInitialValue<int>(kind, 2);
  Sequence cond;
  cond.add(Copy(popops::lt(graph, i, limit, cond), go));
  Sequence body;
  body.add(Copy(popops::add(graph, i, one, body), i));
  Sequence plus;
  plus.add(Copy(popops::add(graph, i, ten, plus), i));
  Sequence times;
  times.add(Copy(popops::mul(graph, i, ten, times), i));
  Sequence prog;
  prog.add(RepeatWhileTrue(cond, go, body));
  prog.add(Switch(kind, {{1, plus}, {2, times}}, Sequence()));
  prog.add(If(popops::gt(graph, i, limit, prog), plus, times));
  graph.createHostRead("i", i);
  Engine engine(graph, prog);
  engine.load(Device(graph.getTarget()));
  engine.run();
  int got = 0;
  engine.readTensor("i", &got, &got + 1);
  CHECK_EQ(got, 60);
}

TEST(variables_keep_their_values_between_runs) {
  Graph graph{Target()};
  const Tensor n = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "n");
  const Tensor one = graph.addConstant<float>(FLOAT, {1}, 1.0f);
  Sequence prog;
  popops::addInPlace(graph, n, one, prog);
  graph.createHostRead("n", n);
  graph.createHostWrite("n", n);
  Engine engine(graph, prog);
  engine.load(Device(graph.getTarget()));
  float value = 40;
  engine.writeTensor("n", &value, &value + 1);
  engine.run();
  engine.run();
  engine.readTensor("n", &value, &value + 1);
  CHECK_EQ(value, 42.0f);

  Engine second(graph, prog);
  second.load(Device(graph.getTarget()));
  second.writeTensor("n", &value, &value + 1);
  second.run();
  second.readTensor("n", &value, &value + 1);
  CHECK_EQ(value, 43.0f);
}

TEST(functions_are_shared_and_callable_twice) {
  Graph graph{Target()};
  const Tensor n = graph.addVariable(FLOAT, {3}, VariableMappingMethod::LINEAR, "n");
  graph.setInitialValue<float>(n, 3.0f);
  Sequence square;
  popops::mulInPlace(graph, n, n, square);
  const Function f = graph.addFunction(square);
  graph.createHostRead("n", n);
  Engine engine(graph, Sequence({Call(f), Call(f)}));
  engine.load(Device(graph.getTarget()));
  engine.run();
  float got[3];
  engine.readTensor("n", got, got + 3);
  CHECK_EQ(got[2], 81.0f);
}

TEST(error_program_stops_with_its_message) {
  Graph graph{Target()};
  const Tensor t = graph.addConstant<float>(FLOAT, {1}, 1.0f);
  Engine engine(graph, ErrorProgram("this must not happen", t));
  engine.load(Device(graph.getTarget()));
  CHECK_THROWS(engine.run(), "this must not happen");
}

TEST(too_large_a_program_names_tile_bytes_and_tensor) {
  Graph graph{Target()};
  const Tensor big = graph.addVariable(FLOAT, {1000000}, "the big one");
  graph.setTileMapping(big, 7);
  Sequence prog;
  popops::addInPlace(graph, big, big, prog);
  CHECK_THROWS(compileGraph(graph, {prog}, {{"debug.outOfMemory", "error"}}), "on tile 7");
  CHECK_THROWS(compileGraph(graph, {prog}, {{"debug.outOfMemory", "error"}}), "the big one");
  CHECK_THROWS(compileGraph(graph, {prog}, {{"debug.outOfMemory", "error"}}), "638976");
}
