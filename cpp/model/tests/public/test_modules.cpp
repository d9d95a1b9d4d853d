#include <condition_variable>
#include <poplar/CSRFunctions.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Error.hpp>
#include <poplar/Module.hpp>
#include <poplin/Cholesky.hpp>
#include <poplin/ConvParams.hpp>
#include <poplin/ConvPreplan.hpp>
#include <popops/ElementWise.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_set>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

struct Doubling : Fixture {
  Doubling() {
    x = graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR);
    graph.createHostWrite("x", x);
    graph.createHostRead("x", x);
    popops::addInPlace(graph, x, x, prog);
  }
  std::vector<float> run(Engine& engine, std::vector<float> values) {
    engine.writeTensor("x", ArrayRef<float>(values));
    engine.run();
    engine.readTensor("x", ArrayRef<float>(values));
    return values;
  }
  Tensor x;
};

/// Feeds numbers once another thread says so.
class Waiting : public ResumableStreamCallback {
 public:
  Result prefetch(void*) override { return Result::NotAvailable; }
  void fetch(void* p) override {
    wait();
    for (int i = 0; i < 4; ++i) static_cast<float*>(p)[i] = static_cast<float>(i + 1);
  }
  void complete() override { ++completed; }
  int completed = 0;
};

}  // namespace

TEST(a_module_is_a_program_that_can_be_kept) {
  Doubling d;
  const Module made = compileModule(d.graph, d.prog);
  std::stringstream file;
  made.serialize(file);
  const Module kept = Module::deserialize(file);
  Engine engine(kept.executable());
  engine.load(d.device);
  CHECK(d.run(engine, {1, 2, 3, 4}) == (std::vector<float>{2, 4, 6, 8}));
  CHECK_THROWS(made.forEachSegment({}), "code of tiles");
  CHECK_THROWS(made.forEachLoadableSegment({}), "code of tiles");
  const Preallocations none;
  CHECK(none == Preallocations());
  Engine again(compileModule(d.graph, d.prog, none).executable());
  again.load(d.device);
  CHECK(d.run(again, {5, 6, 7, 8}) == (std::vector<float>{10, 12, 14, 16}));
  const std::vector<Program> programs = {d.prog};
  Engine offline(compileGraph(d.graph, programs, none, true), {{"debug.instrument", "false"}});
  CHECK_EQ(offline.getEngineOptions().at("debug.instrument"), "false");
}

TEST(simulated_errors_end_the_next_run) {
  Doubling d;
  Engine engine(d.graph, d.prog);
  engine.load(d.device);
  const auto tiles = engine.getSimulatedErrorLocations(0);
  const std::unordered_set<ErrorLocation, ErrorLocationHash> set(tiles.begin(), tiles.end());
  CHECK(set.size() == 8U && set.count(ErrorLocation(3)) == 1 && set.count(ErrorLocation(8)) == 0);
  engine.insertSimulatedError(ErrorCode::INVALID_ADDRESS, ErrorLocation(3));
  try {
    engine.run();
    CHECK(false);
  } catch (const application_runtime_error& e) {
    CHECK(std::string(e.what()).find("tile 3: INVALID_ADDRESS") != std::string::npos);
  }
  engine.insertSimulatedError(ErrorCode::HOST_LINK_DOWN, ErrorLocation(1));
  engine.insertSimulatedError(ErrorCode::TRAP, ErrorLocation(0));
  engine.eraseSimulatedError(ErrorLocation(0));
  try {
    engine.run();
    CHECK(false);
  } catch (const recoverable_runtime_error& e) {
    CHECK(e.getRecoveryAction() == RecoveryAction::FULL_RESET);
  }
  engine.insertSimulatedError(ErrorCode::TRAP, ErrorLocation(2));
  engine.clearSimulatedErrors();
  CHECK(d.run(engine, {1, 1, 1, 1}) == (std::vector<float>{2, 2, 2, 2}));
  CHECK_THROWS(engine.insertSimulatedError(ErrorCode::TRAP, ErrorLocation(8)), "below 8");
  CHECK_THROWS(engine.getSimulatedErrorLocations("add"), "a compute set with vertices; got 'add'");
  CHECK_EQ(errorCodeToString(ErrorCode::IPU_MEMORY_FAILURE).cloneAsString(), "IPU_MEMORY_FAILURE");
  CHECK(errorCodeFromString("LINK_DOWN") == ErrorCode::LINK_DOWN);
  CHECK(errorCodeFromString("anything") == ErrorCode::UNKNOWN);
}

TEST(a_callback_waits_until_it_is_notified) {
  Fixture f;
  const Tensor x = f.graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR);
  const DataStream in = f.graph.addHostToDeviceFIFO("in", FLOAT, 4);
  f.graph.createHostRead("x", x);
  f.prog.add(Copy(in, x));
  Engine engine(f.graph, f.prog);
  auto callback = std::make_unique<Waiting>();
  Waiting& waiting = *callback;
  engine.connectStreamToCallback("in", std::move(callback));
  engine.load(f.device);
  CHECK(!waiting.isAwaiting());
  std::thread other([&] {
    while (!waiting.isAwaiting()) std::this_thread::yield();
    waiting.notify();
  });
  engine.run();
  other.join();
  CHECK(f.read(engine, "x", 4) == (std::vector<float>{1, 2, 3, 4}));
  CHECK_EQ(waiting.completed, 1);
}

TEST(behaviour_of_floats_is_modified_and_restored) {
  Fixture f;
  setFloatingPointBehaviour(f.graph, f.prog, {false, false, false, false, false});
  const Tensor saved =
      getAndModifyFloatingPointBehaviour(f.graph, f.prog, {}, {false, false, false, false, true});
  // A tile's control register, for each tile.
  CHECK_EQ(f.graph.getTarget().getFpIctlRegIndex(), 0x20u);
  CHECK_EQ(f.graph.getTarget().makeFpIctlValue(true, false, true, false, false), 5u);
  const unsigned nanoo = f.graph.getTarget().makeFpIctlValue(false, false, false, false, true);
  const Tensor on = getAndModifyFloatingPointBehaviour(
      f.graph, f.prog, {false, false, false, false, false}, {false, false, false, false, false});
  CHECK_EQ(on.numElements(), f.graph.getTarget().getNumTiles());
  std::vector<unsigned> bits(on.numElements());
  CHECK(f.graph.getConstantValue(on, bits.data()));
  for (const unsigned b : bits) CHECK_EQ(b, nanoo);
  const Tensor big = f.constant<float>({1}, {1e6F});
  const Tensor nan =
      popops::map(f.graph, popops::expr::Cast(popops::expr::_1, HALF), {big}, f.prog);
  setFloatingPointBehaviour(f.graph, f.prog, saved);
  const Tensor max =
      popops::map(f.graph, popops::expr::Cast(popops::expr::_1, HALF), {big}, f.prog);
  const Tensor both =
      popops::map(f.graph, popops::expr::Cast(popops::expr::_1, FLOAT), {concat(nan, max)}, f.prog);
  const auto got = f.run(both);
  CHECK(std::isnan(got[0]));
  CHECK_EQ(got[1], 65504.0F);
  CHECK_THROWS(setFloatingPointBehaviour(f.graph, f.prog, big), "getAndModify");
}

TEST(a_loop_ends_when_it_is_stopped) {
  Doubling d;
  Sequence body;
  const DataStream tick = d.graph.addDeviceToHostFIFO("tick", FLOAT, 4);
  body.add(Copy(d.x, tick));
  Engine engine(d.graph, Loop(body));
  int turns = 0;
  engine.connectStreamToCallback("tick", [&](void*) {
    if (++turns == 5) engine.stop();
  });
  engine.load(d.device);
  CHECK_THROWS(engine.run(), "");
  CHECK(turns >= 5 && turns < 100);
}

TEST(products_of_a_factorization_by_blocks_are_known_before) {
  const auto products = poplin::getCholeskyMatMulPrePlanParameters(
      FLOAT, {2, 20, 20}, true, {{"blockSize", "8"}, {"partialsType", "float"}});
  CHECK_EQ(products.size(), 4U);  // below 8 of 20, and below 8 of 12: two each
  for (const auto& [product, options] : products) {
    CHECK_EQ(product.aShape[0], 2U);
    CHECK_EQ(product.aShape[2], 8U);
    CHECK(product.aShape[1] == 12 || product.aShape[1] == 4);
    CHECK(product.bShape[2] == 8 || product.bShape[2] == product.aShape[1]);
    CHECK_EQ(options.size(), 1U);
  }
  CHECK(poplin::getCholeskyMatMulPrePlanParameters(FLOAT, {8, 8}, true, {}).empty());
  CHECK_THROWS(poplin::getCholeskyMatMulPrePlanParameters(FLOAT, {8, 4}, true, {}), "square");
  const Target target = Target::createIPUTarget(1, "ipu2");
  std::set<poplin::MatMulPlanParams> wanted;
  for (const auto& [product, options] : products) wanted.emplace(&target, product, &options);
  poplin::PlanningCache cache;
  poplin::preplan({}, wanted, cache);
  CHECK_EQ(cache.size(), products.size());
}

TEST(convolutions_have_hashes_and_a_plain_form) {
  poplin::ConvParams params(HALF, FLOAT, 1, {1, 5}, {1, 3}, 4, 4, 1);
  poplin::ConvParams plain = params;
  params.inputTransform.dilation[0] = 3;
  params.kernelTransform.flip[0] = true;
  params.kernelTransform.flip[1] = true;
  params.outputTransform.stride[0] = 2;
  plain.kernelTransform.flip[1] = true;
  CHECK(params != plain && params.canonicalize() == plain);
  CHECK(plain.canonicalize() == plain);
  const std::hash<poplin::ConvParams> hash;
  CHECK(hash(params.canonicalize()) == hash(plain) && hash(params) != hash(plain));
  CHECK(hash_value(params.inputTransform) != hash_value(plain.inputTransform));
}

TEST(small_names_that_programs_use) {
  Fixture f;
  const Target& target = f.graph.getTarget();
  CHECK_EQ(target.getConvUnitMaxPipelineDepth(HALF), 4U);
  CHECK_EQ(
      target.getFp16ConvUnitMaxPipelineDepth() * target.getFp16ConvUnitInputLoadElemsPerCycle(),
      target.getWeightsPerConvUnit(HALF));
  const ProfileValue numbers = ProfileValue::Vector{1, 2, 4};
  CHECK_EQ(numbers.sumInt(), 7);
  CHECK_EQ(ProfileValue(ProfileValue::Vector{numbers, numbers}).sum2DUint(), 14U);
  CHECK(numbers.toUintVector() == (std::vector<unsigned>{1, 2, 4}));
  CHECK(ProfileValue(true).type() == ProfileValue::Type::BOOL_);
  const GenericInterval<int> interval(2, 5);
  CHECK_EQ(interval.size(), 3);
  CHECK(Interval(1, 2) < Interval(1, 3));
  const Graph two(f.device, 1, replication_factor(1));
  CHECK_EQ(two.getTarget().getNumIPUs(), 1U);
  CHECK_EQ(f.graph.convertTileToTopLevelGraphTile(3), 3U);
  CHECK_EQ(f.graph.createVirtualGraph(2, 6).convertTopLevelGraphTileToTile(5), 3U);
  CHECK_THROWS(f.graph.addExternalVariable(FLOAT, {1}, "x"), "addVariable");
  std::istringstream placeholder("{}");
  CHECK_THROWS(f.graph.addCodeletPlaceholder(placeholder), "addCodelets");
  const Tensor x = f.graph.addVariable(UNSIGNED_INT, {});
  f.graph.setTileMapping(x, 0);
  f.graph.setInitialValue(x, std::map<unsigned, unsigned>{{0, 7}});
  CHECK_THROWS(f.graph.setInitialValue(x, std::map<unsigned, unsigned>{{0, 7}, {1, 8}}),
               "replicas");
  CHECK_EQ(f.run<unsigned>(x)[0], 7U);
  recoverable_runtime_error error(RecoveryAction::LINK_RESET, "down");
  std::ostringstream text;
  text << error.getRecoveryAction();
  CHECK_EQ(text.str(), "LINK_RESET");
}
