#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <poplar/CycleCount.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>
#include <thread>

#include "Check.hpp"
#include "Fixture.hpp"

/// The host's part of programs: callbacks, host functions, profiles, devices.
using namespace poplar;
using namespace poplar::program;

namespace {

struct Counting final : StreamCallback {
  explicit Counting(int* completed) : completed(completed) {}
  Result prefetch(void*) noexcept override { return Result::NotAvailable; }
  void fetch(void* p) noexcept override {
    for (int i = 0; i < 4; ++i) static_cast<float*>(p)[i] = static_cast<float>(*completed);
  }
  void complete() noexcept override { ++*completed; }
  int* completed;
};

std::atomic<bool> engine_has_ended{false};

/// x = x + the next value of a stream, `rounds` times.
struct Sum {
  Device device = IPUModel().createDevice();
  Graph graph{device};
  Tensor x = graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "x");
  Tensor y = graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "y");
  DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, 4);
  Sequence prog;

  explicit Sum(unsigned rounds) {
    graph.setInitialValue(x, 0.0);
    Sequence body(Copy(in, y));
    popops::addInPlace(graph, x, y, body);
    prog = Sequence(Repeat(rounds, body));
    graph.createHostRead("x", x);
    graph.createHostWrite("x", x);
  }
};

}  // namespace

TEST(a_stream_callback_fetches_and_completes_every_block) {
  Sum sum(3);
  Engine engine(sum.graph, sum.prog, {{"exchange.enablePrefetch", "true"}});
  engine.load(sum.device);
  int completed = 0;
  engine.connectStreamToCallback(sum.in, std::make_unique<Counting>(&completed));
  engine.run(0);
  float x[4];
  engine.readTensor("x", x);  // as older programs write it
  CHECK_EQ(completed, 3);
  CHECK_EQ(x[0], 3.0f);  // 0 + 1 + 2
  const float five[4] = {5, 5, 5, 5};
  engine.writeTensor("x", five);
  engine.connectStreamToCallback("in", 0, [](void* p) { static_cast<float*>(p)[0] = 1; });
  engine.run(0, "again");
  engine.readTensor("x", x);
  CHECK_EQ(x[0], 8.0f);
  CHECK_THROWS(engine.connectStreamToCallback("in", 1, [](void*) {}), "got replica 1");
  CHECK_THROWS(Engine(sum.graph, sum.prog, {{"nothing", "1"}}), "nothing");
}

TEST(engines_of_the_early_form_are_loaded_when_made) {
  Sum sum(3);
  Engine one(sum.device, sum.graph, sum.prog);
  Engine two(sum.device, sum.graph, {sum.prog, sum.prog}, {{"debug.instrument", "true"}});
  float in[12] = {};
  for (Engine* engine : {&one, &two}) {
    engine->connectStream(sum.in, in, in + 12);
    engine->run();
  }
  two.run(1);
  CHECK_EQ(two.getExecutionProfile()["runs"].size(), 2u);
}

TEST(profiles_tell_the_account_of_graph_and_runs) {
  Sum sum(3);
  Engine engine(sum.graph, sum.prog);
  float in[12] = {};
  engine.connectStream(sum.in, in, in + 12);
  engine.load(sum.device);
  const auto start = engine.getTimeStamp();
  engine.run(0, "first");
  engine.run(0);
  const ProfileValue graph = engine.getGraphProfile();
  auto& execution = engine.getExecutionProfile();
  CHECK_EQ(graph["target"]["numTiles"].asUint(), sum.graph.getTarget().getNumTiles());
  CHECK_EQ(execution["runs"].size(), 2u);
  CHECK_EQ(execution["runs"][0]["name"].asString(), "first");
  const double cycles = execution["simulation"]["cycles"].asDouble();
  CHECK_EQ(cycles, 2 * graph["longestProgram"]["cycles"].asDouble());
  CHECK(cycles > 0);
  const std::string report = engine.reportTiming(start, engine.getTimeStamp());
  CHECK(report.find(std::to_string(static_cast<unsigned long>(cycles))) != std::string::npos);
  std::ostringstream summary;
  printProfileSummary(summary, graph, execution, {{"showExecutionSteps", "true"}});
  CHECK(summary.str().find("Cycles of 2 runs") != std::string::npos);
  engine.resetExecutionProfile();
  CHECK_EQ(engine.getExecutionProfile()["runs"].size(), 0u);
}

TEST(a_cycle_counter_reads_what_the_account_has) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  Tensor x = graph.addVariable(FLOAT, {4096}, VariableMappingMethod::LINEAR, "x");
  graph.setInitialValue(x, 1.0f);
  const auto counted = [&](unsigned rounds, const char* name) {
    Sequence body;
    popops::addInPlace(graph, x, 1.0f, body);
    Sequence prog(Repeat(rounds, body));
    Tensor cycles = cycleCount(graph, prog, 3, SyncType::INTERNAL, name);
    graph.createHostRead(name, cycles);
    return prog;
  };
  Sequence once = counted(1, "once");
  Sequence often = counted(50, "often");
  Engine engine(graph, {once, often});
  engine.load(device);
  std::uint64_t cycles[2];
  engine.run(0);
  engine.readTensor("once", &cycles[0]);
  engine.run(1);
  engine.readTensor("often", &cycles[1]);
  CHECK(cycles[0] > 0);
  CHECK(cycles[1] > 40 * cycles[0]);
  CHECK(static_cast<double>(cycles[0]) <
        engine.getExecutionProfile()["runs"][0]["cycles"].asDouble());
}

TEST(a_host_function_is_called_with_its_arguments) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  Tensor a = graph.addConstant<float>(FLOAT, {3}, {1, 2, 3});
  Tensor b = graph.addConstant(INT, {}, 10);
  Tensor r = graph.addVariable(FLOAT, {3}, VariableMappingMethod::LINEAR, "r");
  const HostFunction scale = graph.addHostFunction("scale", {{FLOAT, 3}, {INT, 1}}, {{FLOAT, 3}});
  const std::vector<std::tuple<Type, std::size_t>> one{{FLOAT, 3}};
  const HostFunction tell = graph.addHostFunction("tell", ArrayRef{one}, {});
  graph.createHostRead("r", r);
  Sequence prog(Call(scale, {a, b}, {r}), Call(tell, {r}, {}));
  CHECK_THROWS(Call(tell, {}, {}), "1 inputs");
  CHECK_THROWS(graph.addHostFunction("nothing", {}, {}), "at least one");
  Engine engine(graph, prog);
  engine.load(device);
  engine.connectHostFunction("scale", 0, [](ArrayRef<const void*> inputs, ArrayRef<void*> outputs) {
    const auto* x = static_cast<const float*>(inputs[0]);
    const float k = static_cast<float>(*static_cast<const int*>(inputs[1]));
    for (int i = 0; i < 3; ++i) static_cast<float*>(outputs[0])[i] = k * x[i];
  });
  float told = 0;
  engine.connectHostFunction("tell", 0, [&](ArrayRef<const void*> inputs, ArrayRef<void*>) {
    told = static_cast<const float*>(inputs[0])[2];
  });
  engine.run(0);
  float result[3];
  engine.readTensor("r", result, result + 3);
  CHECK_EQ(result[1], 20.0f);
  CHECK_EQ(told, 30.0f);
  CHECK_THROWS(
      engine.connectHostFunction("unknown", 0, [](ArrayRef<const void*>, ArrayRef<void*>) {}),
      "unknown");
}

TEST(a_switch_lists_the_model_as_ipus) {
  unsetenv("IPUJAX_MODEL_AS_IPU");
  const auto manager = DeviceManager::createDeviceManager();
  CHECK(manager.getDevices(TargetType::IPU, 1).empty());
  CHECK_THROWS(manager.acquireAvailableDevice(), "IPUJAX_MODEL_AS_IPU");
  setenv("IPUJAX_MODEL_AS_IPU", "1", 1);
  CHECK_EQ(manager.getNumDevices(), 16u);
  auto devices = manager.getDevices(TargetType::IPU, 4);
  CHECK_EQ(devices.size(), 4u);
  CHECK_EQ(devices[3].getTarget().getNumIPUs(), 4u);
  CHECK_EQ(devices[1].getDriverIDs()[0], 4);
  CHECK_EQ(manager.getDevices().size(), 16u + 8u + 4u + 2u + 1u);
  CHECK_EQ(manager.getDevice(devices[1].getId()).getDriverIDs()[0], 4);
  CHECK(manager.getChildDeviceIds(devices[1].getId()) == (std::vector<unsigned>{4, 5, 6, 7}));
  CHECK_EQ(manager.getChildDeviceIds(devices[1].getId(), 2).size(), 2u);
  CHECK_THROWS(manager.getChildDeviceIds(3), "more than 1 IPUs");
  CHECK(devices[0].attach());
  CHECK(devices[0].getTarget().getTargetType() == TargetType::IPU);
  CHECK(manager.acquireAvailableDevice(2).isAttached());
  unsetenv("IPUJAX_MODEL_AS_IPU");
  CHECK_EQ(manager.getDevices(TargetType::IPU_MODEL, 2).size(), 1u);
  CHECK_EQ(Device::createCPUDevice().getTarget().getNumTiles(), 1u);
}

TEST(targets_are_made_by_name_serialised_and_hashed) {
  const Target pair = Target::createIPUTarget(2, "ipu2");
  std::stringstream file;
  pair.serialize(file);
  const Target same(file);
  CHECK(same == pair);
  CHECK_EQ(std::hash<Target>()(same), pair.hash());
  CHECK(Target::createIPUTarget("ipu2:2") == pair);
  CHECK_EQ(Target::createIPUTarget("ipu2").getNumIPUs(), 1u);
  CHECK_THROWS(Target::createIPUTarget("ipu2:many"), "'ipu2:many'");
  for (const char* system : {"IPU-POD16", "IPU-POD16-DA", "IPU-M2000"})
    CHECK(Target::createIPUTarget(2, system) == Target::createIPUTarget(2, "gc200"));
  for (const char* system : {"Bow-2000", "BOW-POD64"})
    CHECK(Target::createIPUTarget(2, 4, system) == Target::createIPUTarget(2, 4, "bow"));
  CHECK_THROWS(Target::createIPUTarget(2, "POD16"), "needs one of gc200");
  std::stringstream other("something else");
  CHECK_THROWS(Target{other}, "Target::serialize");
  CHECK_EQ(pair.getTypeLimitsMaxAs<std::uint64_t>(UNSIGNED_INT), 4294967295u);
  CHECK_EQ(pair.getTypeLimitsLowestAs<std::int64_t>(SHORT), -32768);
  CHECK_EQ(pair.getTypeLimitsMaxAs<double>(HALF), 65504.0);
  CHECK_THROWS(pair.getTypeLimitsMaxAs<std::int64_t>(UNSIGNED_LONGLONG), "exactly");
  CHECK_THROWS(pair.getTypeLimitsLowestAs<std::uint64_t>(INT), "exactly");
  CHECK_EQ(pair.getNumConvUnits(HALF, FLOAT), pair.getFp16InFp32OutConvUnitsPerTile());
  CHECK_EQ(pair.getWeightsPerConvUnit(FLOAT), 8u);
  CHECK_EQ(pair.getWeightsPerConvUnit(QUARTER), 32u);
}

TEST(options_of_engines_and_runs_come_from_the_environment_too) {
  Sum sum(1);
  float in[4] = {1, 1, 1, 1};
  setenv("POPLAR_ENGINE_OPTIONS", R"({"debug.instrument": "false", "opt.level" : 3})", 1);
  Engine engine(sum.graph, sum.prog);
  unsetenv("POPLAR_ENGINE_OPTIONS");
  engine.connectStream(sum.in, in);
  engine.load(sum.device);
  engine.run(0, "named", RuntimeOptions({{"target.hostSyncTimeout", "10"}}));
  CHECK_EQ(engine.getExecutionProfile()["runs"].size(), 0u);
  engine.enableExecutionProfiling();
  engine.run(0);
  CHECK_EQ(engine.getExecutionProfile()["runs"].size(), 1u);
  CHECK_THROWS(RuntimeOptions({{"debug.trace", "true"}}), "Give others to the Engine");
  setenv("POPLAR_RUNTIME_OPTIONS", "{\"target.syncMethod\"", 1);
  CHECK_THROWS(RuntimeOptions(OptionFlags()), "JSON object");
  unsetenv("POPLAR_RUNTIME_OPTIONS");
}

TEST(a_run_is_stopped_from_another_thread) {
  Fixture f;
  const Tensor go = f.graph.addConstant(BOOL, {}, true);
  f.prog.add(RepeatWhileTrue(Sequence(), go, Sequence()));
  Engine engine(f.graph, f.prog);
  engine.load(f.device);
  std::thread stopper([&] {
    while (!engine_has_ended) {
      engine.stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  CHECK_THROWS(engine.run(), "cancelled");
  engine_has_ended = true;
  stopper.join();
}

TEST(engines_list_streams_print_and_serialize) {
  Fixture f;
  const Tensor t = f.variable("t", {2});
  const DataStream in = f.graph.addHostToDeviceFIFO("in", FLOAT, 2);
  f.prog.add(Copy(in, t));
  f.prog.add(PrintTensor("what came", t));
  Engine engine(f.graph, f.prog);
  CHECK(engine.listStreams() == (std::vector<std::string>{"in"}));
  std::ostringstream printed;
  engine.setPrintStream(printed);
  std::vector<float> values{1.5f, -2};
  engine.connectStream(in, values.data());
  engine.loadAndRun(f.device);
  CHECK_EQ(printed.str(), std::string("what came: [ 1.5000000 -2.0000000]\n"));

  std::stringstream file;
  engine.serializeExecutable(file);
  Engine again(Executable::deserialize(file));
  again.setPrintTensorStream(printed);
  again.connectStream("in", values.data());
  again.loadAndRun(f.device);
  CHECK(f.read(again, "t", 2) == values);
}

TEST(programs_are_dumped_and_abort_with_messages) {
  Fixture f;
  const Tensor t = f.variable("t", {1}, BOOL);
  f.prog.add(Repeat(3, Sequence({WriteUndef(t), AbortOnCondition(t, "too large", {"check"})})));
  std::ostringstream text;
  dumpProgram(f.graph, f.prog, text);
  CHECK(text.str().find("Repeat x 3") != std::string::npos);
  CHECK(text.str().find("'check'") != std::string::npos);
  CHECK(f.prog == f.prog);
  CHECK(f.prog != Sequence());

  Fixture g;
  g.prog.add(Abort("no more"));
  Engine engine(g.graph, g.prog);
  engine.load(g.device);
  CHECK_THROWS(engine.run(), "no more");
  const recoverable_runtime_error error("x", RecoveryAction::LINK_RESET);
  CHECK_EQ(toString(error.getRecoveryAction()), std::string("LINK_RESET"));
}

TEST(models_have_the_figures_that_are_set) {
  IPUModel model("ipu2");
  model.tilesPerIPU = 4;
  model.memoryBytesPerTile = 1 << 16;
  model.memcpyBytesPerCycle = 2;
  const Device device = model.createDevice(OptionFlags{}, true, 7);
  CHECK_EQ(device.getTarget().getBytesPerTile(), 1u << 16);
  CHECK_EQ(device.getTarget().getMemcpyBytesPerCycle(), 2u);
  CHECK_EQ(device.getId(), 7u);
  Graph graph(device);
  const Tensor t = graph.addVariable(FLOAT, {4});
  const Tensor twice = concat(t, t);
  CHECK_EQ(graph.getSortedContiguousRegions(twice, {{0, 8}}, true)[0][0].size(), 4u);
  CHECK_THROWS(graph.createReplicatedGraph(3), "share evenly");
}
