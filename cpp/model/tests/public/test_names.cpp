#include <cmath>
#include <cstdlib>
#include <gcl/TileAllocation.hpp>
#include <limits>
#include <popfloat/experimental/CastToHalf.hpp>
#include <popfloat/experimental/GfloatExprUtil.hpp>
#include <poplar/Engine.hpp>
#include <poplar/FunctionBuffer.hpp>
#include <poplar/MetadataCreation.hpp>
#include <poplar/PerfEstimateFunc.hpp>
#include <poplar/Quarter.hpp>
#include <poplar/RandomSeed.hpp>
#include <poplar/TypeConversion.hpp>
#include <poplar/VectorLayout.hpp>
#include <poplar/VertexIntrospector.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ScalarMultiply.hpp>
#include <popops/Zero.hpp>
#include <poprand/RandomGen.hpp>
#include <set>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr const char* kScale = R"(
#include <poplar/Vertex.hpp>
class Scale : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> in;
  poplar::Output<poplar::Vector<float>> out;
  poplar::Input<float> factor;
  unsigned twice;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = in[i] * factor * (twice ? 2 : 1);
    return true;
  }
};
)";

/// The cycles of a vertex by an estimator, by an estimate of its own, or without either.
double cyclesOf(const PerfEstimateFunc& estimator, bool own = false) {
  Fixture f;
  std::istringstream source(kScale);
  f.graph.addCodelets(source);
  const auto x = f.constant<float>({12}, std::vector<float>(12, 3));
  const auto y = f.variable("y", {12});
  f.graph.setTileMapping(x, 1);
  f.graph.setTileMapping(y, 1);
  const auto cs = f.graph.addComputeSet("scale");
  const auto v = f.graph.addVertex(cs, "Scale", {{"in", x}, {"out", y}});
  f.graph.connect(v["factor"], 5.0F);
  f.graph.setInitialValue(v["twice"], 1);
  f.graph.setTileMapping(v, 1);
  if (own) f.graph.setPerfEstimate(v, 6000);
  if (estimator) f.graph.registerPerfEstimator("Scale", estimator);
  f.prog.add(Execute(cs));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "y", 12)[11], 30.0F);
  return engine.getExecutionProfile()["simulation"]["computeCycles"].asDouble();
}

std::uint8_t quarterOf(const QuarterMetadata& m, float value, bool nan = true) {
  std::uint8_t bits = 0;
  convertToDeviceType<float>(QUARTER, m, ArrayRef<float>(&value, 1), &bits, nan);
  return bits;
}

float valueOf(const QuarterMetadata& m, std::uint8_t bits) {
  std::vector<float> value(1);
  convertFromDeviceType(QUARTER, m, &bits, ArrayRef(value));
  return value[0];
}

}  // namespace

TEST(estimators_say_the_cycles_of_their_vertices) {
  std::size_t asked = 0;
  const auto estimator = [&](const VertexIntrospector& v, const Target& target) {
    ++asked;
    CHECK_EQ(v.getFieldInfo("in").rank(), 1U);
    CHECK_EQ(v.getFieldInfo("in").size(), 12U);
    CHECK_EQ(v.getFieldInfo("factor").getInitialValue<float>(target), 5.0F);
    CHECK_EQ(v.getFieldInfo("twice").getInitialValue<unsigned>(target), 1U);
    CHECK_THROWS(v.getFieldInfo("in").getInitialValue<float>(target), "before the program");
    CHECK_THROWS(v.getFieldInfo("in")[0], "list of vectors");
    CHECK_THROWS(v.getFieldInfo("other"), "other");
    return VertexPerfEstimate(10 * v.getFieldInfo("in").size(), 12);
  };
  const unsigned workers = 6;
  const double cheap = cyclesOf(estimator);
  CHECK_EQ(asked, 1U);
  const double none = cyclesOf([](const VertexIntrospector&, const Target&) { return 0ULL; });
  CHECK_EQ(cheap - none, 120.0 * workers);
  CHECK_EQ(cyclesOf(estimator, true) - none, 6000.0 * workers);
  CHECK_EQ(asked, 1U);
  // From its loop: a load, a store, two products, a choice, and one for the loop.
  CHECK_EQ(cyclesOf({}) - none, (30.0 + 6 * 12) * workers);
}

TEST(estimators_that_end_the_process_are_errors) {
  const auto aborts = [](const VertexIntrospector&, const Target&) -> VertexPerfEstimate {
    std::abort();
  };
  CHECK_THROWS(cyclesOf(aborts), "that of Scale calls abort()");
  const auto throws = [](const VertexIntrospector&, const Target&) -> VertexPerfEstimate {
    throw std::runtime_error("no idea");
  };
  CHECK_THROWS(cyclesOf(throws), "no idea");
}

TEST(quarters_are_converted_by_the_host) {
  for (const auto format : {QuarterMetadata::Format::F143, QuarterMetadata::Format::F152}) {
    for (const int scale : {-5, 0, 7}) {
      const QuarterMetadata m(format, scale);
      for (unsigned bits = 0; bits < 256; ++bits) {
        const float value = valueOf(m, static_cast<std::uint8_t>(bits));
        CHECK_EQ(unsigned{quarterOf(m, value)}, bits);
        if (bits % 128 == 127) break;
        const float next = valueOf(m, static_cast<std::uint8_t>(bits + 1));
        const float middle = (value + next) / 2;  // ties go to the even pattern
        CHECK_EQ(unsigned{quarterOf(m, middle)}, bits + bits % 2);
      }
    }
  }
  using Format = QuarterMetadata::Format;
  CHECK_EQ(valueOf({Format::F143, 0}, 0x7f), 240.0F);
  CHECK_EQ(valueOf({Format::F152, 0}, 0x7f), 57344.0F);
  CHECK_EQ(valueOf({Format::F143, 0}, 0x01), std::ldexp(1.0F, -10));
  CHECK_EQ(valueOf({Format::F152, 1}, 0x01), std::ldexp(1.0F, -16));
  CHECK_EQ(valueOf({Format::F143, 0}, 0xff), -240.0F);
  CHECK(std::isnan(valueOf({Format::F143, 0}, 0x80)));
  CHECK_EQ(unsigned{quarterOf({Format::F143, 0}, 1000)}, 0x80U);
  CHECK_EQ(unsigned{quarterOf({Format::F143, 0}, 1000, false)}, 0x7fU);
  CHECK_EQ(unsigned{quarterOf({Format::F143, 0}, -std::numeric_limits<float>::infinity(), false)},
           0xffU);
  CHECK_EQ(unsigned{quarterOf({Format::F152, 0}, -0.0F)}, 0U);
  CHECK_THROWS(QuarterMetadata(Format::F143, 40), "[-32, 31]");
  Fixture f;
  CHECK_EQ(f.graph.getTarget().getTypeSize(QUARTER), 1U);
  CHECK(QUARTER != UNSIGNED_CHAR);
  CHECK_EQ(QUARTER.toString(), "quarter");
  float value = 0;
  CHECK_THROWS(convertToDeviceType<float>(QUARTER, {&value, 1}, &value), "metadata");
}

TEST(host_values_are_converted_to_and_from_device_types) {
  const std::vector<float> values = {0, 1, 3.5F, 100};
  for (const Type& type : {HALF, FLOAT, INT, UNSIGNED_SHORT, SIGNED_CHAR, BOOL}) {
    std::vector<unsigned char> bytes(16);
    convertToDeviceType<float>(type, values, bytes.data());
    std::vector<double> back(4);
    convertFromDeviceType(type, bytes.data(), gccs::ArrayRef(back));
    for (int i = 0; i < 4; ++i) {
      const bool is_real = type == HALF || type == FLOAT;
      const double whole = type == BOOL ? values[i] != 0 : std::trunc(values[i]);
      CHECK_EQ(back[i], is_real ? values[i] : whole);
    }
  }
}

TEST(regions_of_tensors_name_their_variables) {
  Fixture f;
  const auto a = f.variable("a", {2, 3});
  const auto b = f.graph.addConstant<float>(FLOAT, {4}, 1.0F);
  const auto regions = concat(a.slice(0, 2, 1).flatten(), b.slice(1, 3)).getVarRegions();
  CHECK_EQ(regions.size(), 3U);
  CHECK(regions[0].var == regions[1].var && regions[0].var != regions[2].var);
  CHECK(regions[1].interval == Interval(3, 5));
  CHECK(regions[2].interval == Interval(1, 3));
  CHECK(!f.graph.isConstant(regions[0].var) && f.graph.isConstant(regions[2].var));
  CHECK_THROWS(f.graph.isConstant(VariableRef(1000)), "of this graph");
  CHECK_EQ(a.transpose().getVarRegions().size(), 6U);
  const auto t = f.graph.addLinearlyMappedVariable(FLOAT, {20}, 6, 4, "t");
  const auto mapping = f.graph.getTileMapping(t);
  CHECK(mapping[0] == std::vector<Interval>{Interval(0, 8)});
  CHECK(mapping[2] == std::vector<Interval>{Interval(16, 20)});
}

TEST(functions_are_called_from_buffers_too) {
  Fixture f;
  const auto a = f.variable("a", {4});
  const auto function = f.graph.addFunction(Copy(f.constant<float>({4}, {1, 2, 3, 4}), a));
  const auto buffer = f.graph.addFunctionBuffer(function, FunctionBufferMappingType::REMOTE);
  f.prog.add(Copy(function, buffer));
  f.prog.add(Copy(buffer, function));
  f.prog.add(Call(function));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "a", 4)[3], 4.0F);
  CHECK_THROWS(Execute(f.graph.addComputeSet(), a), "one element of BOOL");
  const auto elements = f.graph.getTarget().getMemoryElementOffsets();
  CHECK_EQ(elements.size(), 26u);  // 13 of 16 KiB, and 13 interleaved pairs of them
  CHECK_EQ(f.graph.getTarget().getInterleavedMemoryElementIndex(), 13u);
  CHECK_EQ(elements[13], 212992u);
  CHECK_EQ(elements[25], 638976u - 32768u);
  CHECK_EQ(layout::to_string(layout::Vector::OnePtr), "OnePtr");
}

TEST(tiles_are_set_aside_for_streams) {
  Fixture f(64, 2);
  const unsigned io = gcl::getMinIoTiles(f.graph);
  CHECK_EQ(io, 32U);
  auto compute = f.graph.createVirtualGraph(gcl::perIPUTiles(f.graph, io, 64 - io));
  CHECK_EQ(compute.getTarget().getNumTiles(), 2 * (64 - io));
  CHECK_EQ(gcl::perIPUTiles(f.graph, 0, io).back(), io - 1);
  CHECK_THROWS(gcl::perIPUTiles(f.graph, 60, 5), "at most 64");
  const auto a = f.variable("a", {4});
  f.prog.add(Block(Copy(f.constant<float>({4}, {1, 2, 3, 4}), a), "stage"));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "a", 4)[2], 3.0F);
}

TEST(groups_of_tables_are_sliced_and_updated) {
  Fixture f;
  const auto plan = popops::embedding::plan(f.graph, FLOAT, 2, 5, 3, {4}, {});
  const auto table =
      popops::createGroupedSliceableTensor(f.graph, FLOAT, 2, {5, 3}, {0}, {1}, plan, {});
  const auto indices = popops::createGroupedIndicesTensor(f.graph, 2, {0}, 4, plan, {});
  const auto slices =
      popops::createGroupedSliceTensor(f.graph, FLOAT, 2, {5, 3}, {0}, {1}, 4, plan, {});
  CHECK(indices.shape() == std::vector<std::size_t>({2, 4, 1}));
  CHECK(slices.shape() == std::vector<std::size_t>({2, 4, 1, 3}));
  const std::vector<unsigned> at = {0, 4, 4, 1, 2, 2, 0, 3};
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  f.graph.setInitialValue(indices, at);
  f.graph.setInitialValue(slices, values);
  popops::zero(f.graph, table, f.prog);
  popops::groupedMultiUpdateAdd(f.graph, table, slices, indices, f.constant<float>({}, {2.0F}), {0},
                                {1}, f.prog, plan, {});
  const auto out =
      f.run(popops::groupedMultiSlice(f.graph, table, indices, {0}, {1}, f.prog, plan, {}));
  std::vector<float> sums(30);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t c = 0; c < 3; ++c) sums[i / 4 * 15 + at[i] * 3 + c] += 2 * values[i * 3 + c];
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t c = 0; c < 3; ++c) CHECK_EQ(out[i * 3 + c], sums[i / 4 * 15 + at[i] * 3 + c]);
  CHECK_THROWS(popops::groupedMultiSlice(f.graph, table, indices[0], {0}, {1}, f.prog, plan, {}),
               "dimension 0");
  CHECK(FLOAT.isFloatingPoint() && HALF.isFloatingPoint() && QUARTER.isFloatingPoint());
  CHECK(INT.isIntegral() && !BOOL.isIntegral() && !INT.isFloatingPoint());
}

TEST(generators_are_set_back) {
  Fixture f;
  const auto shape = f.variable("shape", {8});
  const auto kept = getHwSeeds(f.graph, f.prog);
  const auto a = poprand::uniform(f.graph, nullptr, 0, shape, FLOAT, 0, 1, f.prog);
  const auto b = poprand::uniform(f.graph, nullptr, 0, shape, FLOAT, 0, 1, f.prog);
  setHwSeeds(f.graph, kept, f.prog);
  const auto c = poprand::uniform(f.graph, nullptr, 0, shape, FLOAT, 0, 1, f.prog);
  CHECK_THROWS(setHwSeeds(f.graph, shape, f.prog), "UNSIGNED_INT of tiles, workers and 4");
  const auto found = f.run(concat({a, b, c}));
  for (int i = 0; i < 8; ++i) CHECK_EQ(found[i], found[16 + i]);
  CHECK(!std::equal(found.begin(), found.begin() + 8, found.begin() + 8));
}

TEST(seeds_are_of_each_worker_of_each_tile) {
  Fixture f;
  std::vector<unsigned> given(8 * 6 * 4);
  for (unsigned i = 0; i < given.size(); ++i) given[i] = 200 * i + 1000;
  const auto first = getHwSeeds(f.graph, f.prog);
  setHwSeeds(f.graph, f.constant<unsigned>({8, 6, 4}, given), f.prog);
  const auto second = getHwSeeds(f.graph, f.prog);
  CHECK(first.shape() == std::vector<std::size_t>({8, 6, 4}));
  const auto found = f.run<unsigned>(concat(first.flatten(), second.flatten()));
  CHECK(std::equal(given.begin(), given.end(), found.begin() + 192));
  std::set<std::vector<unsigned>> different;
  for (int i = 0; i < 192; i += 4) different.insert({found.begin() + i, found.begin() + i + 4});
  CHECK_EQ(different.size(), 48u);
}

TEST(halves_are_scaled_and_converted) {
  Fixture f;
  const auto wide = f.constant<float>({4}, {1, 2, 3, 4});
  const auto half = f.graph.addVariable(HALF, {2}, VariableMappingMethod::LINEAR);
  f.graph.setInitialValue<float>(half, std::vector<float>{1.5F, -2});
  popops::scalarMultiplyInplace(f.graph, wide, f.constant<float>({1}, {3}), f.prog);
  const auto scaled = popops::scalarMultiply(f.graph, half, f.constant<float>({}, {2}), f.prog);
  CHECK_EQ(scaled.elementType(), HALF);
  CHECK_THROWS(popops::scalarMultiply(f.graph, wide, half.slice(0, 1), f.prog), "a's type");
  CHECK_EQ(f.run(wide)[3], 12.0F);
  using namespace popfloat::experimental;
  CHECK_EQ(singleToHalf(1.5F), 0x3e00);
  CHECK_EQ(halfToSingle(singleToHalf(-0.1F)), -0.0999755859375F);
  CHECK_EQ(singleToHalf(1e6F), 0x7c00);
  CHECK(std::isnan(halfToSingle(singleToHalf(1e6F, true))));
  CHECK_EQ(poputil::templateVertex("Cast", RoundType::RA, FormatType::BFLOAT16),
           std::string("Cast<popfloat::experimental::RoundType::RA,"
                       "popfloat::experimental::FormatType::BFLOAT16>"));
  CHECK_EQ(srDensityTypeToString(SRDensityType::LOGIT_NORMAL), std::string("LOGIT_NORMAL"));
  CHECK(specTypeToPoplarType(SpecType::INT16) == SHORT);
  CHECK_THROWS(specTypeToPoplarType(SpecType::AUTO), "AUTO");
  CHECK_THROWS(roundTypeToString(static_cast<RoundType>(99)), "99");
}
