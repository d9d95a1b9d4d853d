#include <cxxabi.h>

#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/TypeConversion.hpp>
#include <poplin/Convolution.hpp>
#include <popnn/CTCLoss.hpp>
#include <popops/Reduce.hpp>
#include <string>
#include <typeinfo>

#include "Check.hpp"
#include "Fixture.hpp"

/// Undocumented behaviour that public programs rely on.
using namespace poplar;
using namespace poplar::program;

namespace {

std::string nameOf(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : type.name();
  std::free(text);
  return name;
}

template <class E, class F>
bool throwsExactly(const F& function) {
  try {
    function();
  } catch (const std::exception& e) {
    return typeid(e) == typeid(E);
  }
  return false;
}

}  // namespace

TEST(reductions_write_to_outputs_that_differ_in_ones) {
  Fixture f;
  const Tensor in = f.constant<float>({4, 1}, {1, 2, 3, 4});
  const Tensor sum = f.variable("sum", {1}), rows = f.variable("rows", {1, 4, 1});
  popops::reduceWithOutput(f.graph, in, sum, {0, 1}, popops::Operation::ADD, f.prog);
  std::vector<ComputeSet> sets;
  popops::reduceWithOutput(f.graph, in, rows, {1}, popops::Operation::SQUARE_ADD, sets);
  for (const ComputeSet& set : sets) f.prog.add(Execute(set));
  const Tensor two = f.variable("two", {2, 2});
  CHECK_THROWS(popops::reduceWithOutput(f.graph, in, two, {1}, popops::Operation::ADD, f.prog),
               "needs an output with the kept dimensions; got {2,2}");
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "sum", 1)[0], 10.0f);
  CHECK(f.read(engine, "rows", 4) == (std::vector<float>{1, 4, 9, 16}));
}

TEST(cpu_devices_count_ipus_of_one_tile) {
  const Target target = Device::createCPUDevice(3).getTarget();
  CHECK_EQ(target.getNumIPUs(), 3u);
  CHECK_EQ(target.getTilesPerIPU(), 1u);
  CHECK_EQ(target.getNumTiles(), 3u);
  CHECK_EQ(Target::createCPUTarget().getNumTiles(), 1u);
  CHECK_THROWS(Device::createCPUDevice(0), "needs at least one IPU; got 0");
}

TEST(tensors_are_equal_that_have_the_same_elements) {
  Fixture f;
  const Tensor t = f.variable("t", {4, 2}), other = f.variable("other", {4, 2});
  CHECK(t == concat(t.slice(0, 1), t.slice(1, 4)));
  CHECK(t == t.reverse(0).reverse(0));
  CHECK(t == t.reshape({2, 4}).reshape({4, 2}));
  CHECK(t[1] == t.slice(1, 2).squeeze({0}));
  CHECK(t.transpose() == concat(t.slice(0, 1, 1), t.slice(1, 2, 1), 1).transpose());
  CHECK(t != t.reverse(0));
  CHECK(t != t.reshape({8}));
  CHECK(t != other);
  CHECK(t.reinterpret(UNSIGNED_INT) != t);
  CHECK(t[0] != t[1]);
  Fixture g;  // has a variable of the same number
  CHECK(t != g.variable("t", {4, 2}));
}

TEST(values_of_a_device_are_converted_into_vectors) {
  const std::vector<float> values{0.5f, -3, 8};
  std::vector<std::uint16_t> halves(3);
  convertToDeviceType(HALF, values, halves.data());
  std::vector<float> back(3);
  convertFromDeviceType(HALF, halves.data(), back);
  CHECK(back == values);
  const QuarterMetadata metadata(QuarterMetadata::Format::F143, 1);
  std::vector<std::uint8_t> quarters(3);
  convertToDeviceType(QUARTER, metadata, values, quarters.data());
  std::vector<double> wide(3);
  convertFromDeviceType(QUARTER, metadata, quarters.data(), wide);
  CHECK(wide == (std::vector<double>{0.5, -3, 8}));
}

TEST(plans_of_convolutions_tell_costs_by_stage) {
  const Fixture f(16);
  const poplin::ConvParams params(HALF, 2, {16, 16}, {3, 3}, 16, 16, 1);
  const auto total = poplin::reportPlanEstimatedCosts(f.graph, params);
  const auto costs = poplin::internal::reportDetailedPlanEstimatedCosts(f.graph, params);
  CHECK_EQ(costs.total.cycles, total.cycles);
  CHECK_EQ(costs.total.memory, total.memory);
  CHECK(costs.parallelSplit > 1 && costs.parallelSplit <= 16);
  CHECK_EQ(costs.serialSplit, 1u);
  int stages = 0;
  std::size_t cycles = 0;
  costs.apply(
      [&](const poplin::PlanCosts& stage) {
        ++stages;
        if (stage.cycles != poplin::PlanCosts::unknown) cycles += stage.cycles;
      },
      false);
  CHECK_EQ(stages, 12);
  CHECK_EQ(cycles, total.cycles);
  CHECK(costs.compute.cycles > costs.exchange.cycles);
  costs.apply([&](const poplin::PlanCosts&) { ++stages; });
  CHECK_EQ(stages, 25);
}

TEST(ctc_plans_throw_errors_of_poplibs_for_constraints) {
  const Fixture f;
  const auto plan = [&](const char* option, const char* value) {
    popnn::ctc::plan(f.graph, FLOAT, FLOAT, 10, 40, 10, 4, {{option, value}});
  };
  plan("planConstraints", R"({"parallel": {"time": 1}})");
  for (const char* bad : {R"({"parallel": {"batch": 0}})", R"({"parallel": {"xyz": 1}})", "[]"})
    CHECK(throwsExactly<poputil::poplibs_error>([&] { plan("planConstraints", bad); }));
  CHECK(throwsExactly<poputil::poplibs_error>([&] { plan("availableMemoryProportion", "0.0"); }));
  CHECK(throwsExactly<invalid_option>([&] { plan("noSuchOption", "1"); }));
}

TEST(errors_show_as_those_of_poplar) {
  Fixture f;
  const Tensor t = f.variable("t", {4});
  const auto typeOf = [](const auto& function) -> std::string {
    try {
      function();
    } catch (const std::exception& e) {
      return nameOf(typeid(e));
    }
    return "none";
  };
  CHECK_EQ(typeOf([&] { f.graph.addVertex(f.graph.addComputeSet(), "None"); }),
           "poplar::unknown_vertex_type");
  CHECK_EQ(typeOf([&] { f.graph.setTileMapping(t, 1000); }), "poplar::invalid_tile_mapping");
  CHECK_EQ(typeOf([&] { (void)t[9]; }), "poplar::index_error");
  CHECK_EQ(typeOf([&] { f.graph.addCodelets("no such file.cpp"); }), "poplar::file_load_error");
}
