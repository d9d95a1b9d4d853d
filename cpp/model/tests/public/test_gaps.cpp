#include <graphcore_target_access/IPUAttributes.h>

#include <gccs/Algorithm.hpp>
#include <gccs/ArrayRef.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplin/ConvParams.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <pvti/pvti.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// Names and corners of the API that public programs rarely use.
using namespace poplar;
using namespace poplar::program;

namespace {

std::string dumpOf(const Fixture& f) {
  std::ostringstream text;
  dumpProgram(f.graph, f.prog, text);
  return text.str();
}

bool contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

TEST(tensors_without_elements_are_read_written_and_streamed) {
  Fixture f;
  const Tensor none = f.variable("none", {0, 3});
  const Tensor one = f.variable("one", {1});
  f.graph.createHostWrite("none", none);
  f.graph.setInitialValue(one, 7.0f);
  const DataStream in = f.graph.addHostToDeviceFIFO("in", FLOAT, 0);
  const DataStream out = f.graph.addDeviceToHostFIFO("out", FLOAT, 0);
  f.prog.add(Sequence({Copy(in, none), Copy(none, out)}));
  Engine engine(f.graph, f.prog);
  const std::vector<float> empty;
  engine.load(f.device);
  engine.connectStream("in", static_cast<void*>(nullptr));
  engine.connectStream("out", static_cast<void*>(nullptr));
  engine.run();
  engine.writeTensor("none", empty.data(), empty.data());
  engine.readTensor("none", nullptr, nullptr);
  CHECK_EQ(f.read(engine, "one", 1)[0], 7.0f);
  float kept = 0;  // a tensor with elements still needs memory
  CHECK_THROWS(engine.readTensor("one", &kept, &kept), "needs 4 bytes");
}

TEST(dumps_tell_copies_from_computing) {
  Fixture f;
  const Tensor a = f.variable("a", {4});
  const Tensor b = f.variable("b", {4});
  f.prog.add(Copy(a, b));
  CHECK(contains(dumpOf(f), "Copy"));
  CHECK(!contains(dumpOf(f), "Execute"));
  popops::addInPlace(f.graph, a, b, f.prog);
  CHECK(contains(dumpOf(f), "Execute"));
}

TEST(reductions_of_single_elements_are_copies) {
  Fixture f;
  const std::vector<float> values{3, -1, 0.5f, 8};
  const Tensor in = f.constant<float>({1, 2, 1, 2}, values);
  const Tensor sum = popops::reduce(f.graph, in, {0, 2}, popops::Operation::ADD, f.prog);
  CHECK(sum.shape() == (std::vector<std::size_t>{2, 2}));
  CHECK(!contains(dumpOf(f), "Execute"));
  CHECK(f.run(sum) == values);

  Fixture g;  // squares are still computed
  const Tensor x = g.constant<float>({1, 4}, values);
  const Tensor squares = popops::reduce(g.graph, x, {0}, popops::Operation::SQUARE_ADD, g.prog);
  CHECK(contains(dumpOf(g), "Execute"));
  CHECK(g.run(squares) == (std::vector<float>{9, 1, 0.25f, 64}));
}

TEST(options_are_read_from_json) {
  OptionFlags flags{{"kept", "1"}, {"pass", "none"}};
  readJSON(R"({"pass": "INFERENCE_FWD", "proportion": 0.25, "on": true})", flags);
  CHECK_EQ(flags.at("pass"), std::string("INFERENCE_FWD"));
  CHECK_EQ(flags.at("proportion"), std::string("0.25"));
  CHECK_EQ(flags.at("kept"), std::string("1"));
  CHECK_EQ(flags.size(), 4u);
  CHECK(flags.find("absent") == flags.end());
  std::istringstream file(R"({"kept": "2"})");
  readJSON(file, flags);
  CHECK_EQ(getAsProfileValue(flags)["kept"].asString(), std::string("2"));
  CHECK_THROWS(readJSON("[1]", flags), "[readJSON] needs a JSON object");
  CHECK_THROWS(readJSON(R"({"on": [true]})", flags), "got a list or an object as 'on'");
  CHECK_THROWS(readJSON(R"({"on": true, "on": false})", flags), "got 'on' twice");
  CHECK_THROWS(readJSON(R"({"on": yes})", flags), "which ends or differs at byte 7");
  readJSONFromEnv("IPUJAX_TEST_NO_SUCH_VARIABLE", flags);
  CHECK_EQ(flags.size(), 4u);
}

TEST(streams_and_buffers_say_what_they_are_part_of) {
  Graph graph(Fixture::modelOf(2, 4), replication_factor(4));
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, 3);
  CHECK_EQ(in.replicationFactor(), 4u);
  CHECK(isHostToDevice(in.type()));
  CHECK(!isRemoteBuffer(in.type()));
  const RemoteBuffer buffer = graph.addRemoteBuffer("buffer", FLOAT, 3);
  CHECK_THROWS(buffer.getIpuToHostStream(), "getIpuToHostStream");
  CHECK_THROWS(buffer.getHostToIpuStream(), "copies directly");
}

TEST(targets_are_divided_and_say_how_links_are_used) {
  IPUModel model;
  model.numIPUs = 2;
  model.tilesPerIPU = 8;
  model.fp16InFp32OutConvUnitsPerTile = 2;
  model.globalExchangeConstraints = {GlobalExchangeConstraint(1e12, {GlobalExchangeFlow(0, 1)})};
  const Target target = model.createDevice().getTarget();
  CHECK_EQ(target.getFp16InFp32OutConvUnitsPerTile(), 2u);
  CHECK_EQ(target.createVirtualTarget(1, 4).getNumTiles(), 4u);
  CHECK_THROWS(target.createVirtualTarget(3, 4), "createVirtualTarget");
  CHECK(target.getIpuLinkConfiguration() == IpuLinkConfiguration::Default);
  CHECK(target.getIpuLinkTopology() == IpuLinkTopology::Mesh);
  CHECK_THROWS(target.getTileHostExchangeXB(0), "exchange blocks");
}

TEST(targets_name_the_flows_that_share_links) {
  CHECK(Target::createIPUTarget(1, "gc200").getGlobalExchangeConstraints().empty());
  const Target target = Target::createIPUTarget(4, "gc200");
  // Across both rungs, and along both sides, in both directions.
  const auto constraints = target.getGlobalExchangeConstraints();
  CHECK_EQ(constraints.size(), 8u);
  unsigned through_first_rung = 0;
  for (const GlobalExchangeConstraint& link : constraints) {
    const auto has = [&](unsigned src, unsigned dst) {
      return std::any_of(link.flows.begin(), link.flows.end(), [&](const GlobalExchangeFlow& flow) {
        return flow.src == src && flow.dst == dst;
      });
    };
    CHECK(link.bandwidth > 1e11 && link.bandwidth < 1e13);
    CHECK(!has(0, 0));
    if (!has(0, 1)) continue;
    ++through_first_rung;
    CHECK(has(0, 3) && !has(0, 2) && !has(1, 0));
    CHECK_EQ(link.flows.size(), 2u);
  }
  CHECK_EQ(through_first_rung, 1u);
}

TEST(variables_that_nothing_writes_are_zero) {
  {
    const std::vector<std::uint32_t> other(1 << 14, 0x40e00000u);  // leaves its bits on the heap
    CHECK_EQ(other[7], 0x40e00000u);
  }
  Fixture f;
  const Tensor never = f.variable("never", {1 << 12});
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK(f.read(engine, "never", 1 << 12) == std::vector<float>(1 << 12, 0.0f));
}

TEST(casts_write_to_a_tensor_given) {
  Fixture f;
  const Tensor from = f.constant<float>({3}, {1.5f, -2.5f, 1e10f});
  const Tensor to = f.variable("to", {3}, INT);
  popops::castWithOutput(f.graph, from, to, f.prog, {"cast"});
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK(f.read<int>(engine, "to", 3) == (std::vector<int>{1, -2, 0x7fffffff}));
}

TEST(names_come_with_the_headers_that_bring_them_in_the_sdk) {
  CHECK_EQ(poputil::templateVertex("V", FLOAT, true), "V<float,true>");  // of poputil/Util.hpp
  static const pvti::TraceChannel channel = {"channel"};
  const std::string name = "a name in a longer text";
  const pvti::Tracepoint point(&channel, name.data(), 6);
  pvti::Metadata metadata;
  const pvti::Tracepoint described(&channel, name.data(), 6, &metadata);
}

TEST(the_support_library_goes_by_its_own_name) {
  CHECK(gccs::ceildiv(7u, 2) == 4 && gccs::ceildiv(8u, 2) == 4 && gccs::floordiv(7u, 2) == 3);
  CHECK(gccs::alignNext(9u, 4u) == 12 && gccs::alignNext(8u, 4u) == 8);
  CHECK(gccs::alignPrev(9u, 4u) == 8);
  const std::vector<float> values = {1, 2};
  const gccs::ArrayRef<float> same = gccs::ArrayRef(values);
  CHECK(same.size() == 2 && same[1] == 2);
}

TEST(a_device_tells_its_board_and_has_no_driver_to_tell_more) {
  const Device device = Fixture::modelOf(8, 1);
  CHECK(device.getAttribute(IPUAttributes::AttributeId::BoardVariant) == "gc200");
  CHECK_THROWS(device.getAttribute("firmware"), "needs a driver");
}

TEST(the_first_ipu_is_a_machine_of_its_own) {
  IPUModel model("ipu1");
  model.IPUExchangeType = IPUModel::ExchangeType::AGGRESSIVE_MULTICAST;
  const Target target = model.createDevice().getTarget();
  CHECK(target.getTilesPerIPU() == 1216 && target.getBytesPerTile() == 256 * 1024);
  CHECK(target.getTileClockFrequency() == 1.6e9 && target.getTargetArchString() == "ipu1");
  CHECK(target.getNumConvUnits(false, false) == 8 && target.getNumConvUnits(true, true) == 4);
}

TEST(connections_take_lists_in_braces_and_estimates_are_pairs) {
  Fixture f;
  std::istringstream source(
      "#include <poplar/Vertex.hpp>\n"
      "struct Sum : poplar::Vertex {\n"
      "  poplar::Vector<poplar::Input<poplar::Vector<float>>> in;\n"
      "  poplar::Output<float> out;\n"
      "  bool compute() { *out = in[0][0] + 10 * in[1][0]; return true; }\n"
      "};\n");
  std::ostringstream compiler;
  f.graph.addCodelets(source, "", compiler);
  const Tensor a = f.constant<float>({1}, {2});
  const Tensor b = f.constant<float>({1}, {3});
  const Tensor out = f.variable("out", {1});
  const auto cs = f.graph.addComputeSet("sum");
  const auto v = f.graph.addVertex(cs, "Sum", {{"in", {a, b}}, {"out", out[0]}});
  f.graph.setTileMapping(v, 0);
  f.graph.setPerfEstimate(v, VertexPerfEstimate(600, 20));
  CHECK_EQ(f.graph.getPerfEstimate(v).cycles, 600u);
  CHECK_EQ(f.graph.getPerfEstimate(v).flops, 20u);
  f.prog.add(Execute(cs));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "out", 1)[0], 32.0f);

  std::istringstream broken(
      "#include <poplar/Vertex.hpp>\nstruct Odd : poplar::Vertex { int x = y; };\n");
  CHECK_THROWS(f.graph.addCodelets(broken, "", compiler), "codelets.cpp:2");
  CHECK(contains(compiler.str(), "codelets.cpp:2"));
}

TEST(numbers_alone_name_functions_and_indices) {
  CHECK_EQ(FunctionBuffer(3).getId(), 3u);
  CHECK_EQ(HostFunction(4).getId(), 4u);
  CHECK_THROWS(Call(HostFunction(4), {}, {}), "addHostFunction");
}

TEST(runtime_options_are_keys) {
  const RuntimeOptions polling(OptionFlags{{"target.syncMethod", "polling"}});
  const RuntimeOptions again(OptionFlags{{"target.syncMethod", "polling"}});
  const RuntimeOptions hybrid(OptionFlags{{"target.syncMethod", "hybrid"}});
  const std::hash<RuntimeOptions> hash;
  CHECK(polling == again && polling != hybrid);
  CHECK(hash(polling) == hash(again) && hash(polling) != hash(hybrid));
}

TEST(constants_of_another_kind_are_refused) {
  popops::checkTypes(FLOAT, 1.0f);
  popops::checkTypes(HALF, 1.0);
  popops::checkTypes(UNSIGNED_INT, 1u);
  CHECK_THROWS(popops::checkTypes(INT, 1.0f), "needs a constant of the tensor's type, int");
  CHECK_THROWS(popops::checkTypes(INT, 1u), "got one of unsigned int");
}

TEST(numbers_are_taken_where_the_library_takes_them) {
  const auto idOf = [](ComputeSet cs) { return cs.getId(); };
  CHECK_EQ(idOf(7u), 7u);
  const auto functionOf = [](Function f) { return f.getId(); };
  CHECK_EQ(functionOf(3u), 3u);
  poplin::ConvParams params(FLOAT, 1, {8, 8}, {3, 3}, 1, 1, 1);
  params.inputTransform = 2;
  params.outputTransform = 2;
  CHECK_EQ(params.inputTransform.dilation.size(), 2u);
  CHECK_EQ(params.outputTransform.stride.size(), 2u);
  const poputil::TensorUseTracker tracker = 4u;
  CHECK(tracker.empty());
  const popops::expr::PlaceHolder second = 2u;
  CHECK_EQ(second.getIndex(), 2u);
  const popops::expr::ConstHalf half = 1.5f;
  CHECK(half.getType() == HALF);
  CHECK_EQ(std::string(index_error("dimension", 5).what()), "dimension: 5");
  CHECK(graph_memory_allocation_error("too large").profilePath.empty());
  const Target target = Fixture::modelOf(4, 2).getTarget();
  CHECK_EQ(Target::createIPUTarget(2, target.getTargetArchString(), target.getTargetOptions())
               .getNumIPUs(),
           2u);
}
