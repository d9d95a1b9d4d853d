#include <poplar/CycleCount.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>
#include <sstream>

#include "Check.hpp"

/// Programs as users of the SDK write them: only public headers, names and signatures.
using namespace poplar;
using namespace poplar::program;

TEST(a_program_with_streams_handles_and_views) {
  IPUModel ipuModel;
  Device device = ipuModel.createDevice();
  Graph graph(device.getTarget());
  popops::addCodelets(graph);
  Tensor row = graph.addVariable(FLOAT, {4}, "row");
  for (unsigned i = 0; i < 4; ++i) graph.setTileMapping(row[i], i);
  Tensor values = graph.addConstant<float>(FLOAT, {4}, {1.0f, 1.5f, 2.0f, 2.5f}, "values");
  graph.setTileMapping(values, 0);
  Tensor table = graph.addVariable(FLOAT, {4, 4}, "table");
  poputil::mapTensorLinearly(graph, table);
  graph.createHostWrite("write-table", table);
  graph.createHostRead("read-table", table);
  DataStream stream = graph.addHostToDeviceFIFO("numbers", FLOAT, 3);
  Tensor numbers = graph.addVariable(FLOAT, {3}, "numbers");
  poputil::mapTensorLinearly(graph, numbers);

  Sequence prog;
  prog.add(Copy(values, row));
  prog.add(Copy(row.slice(0, 3), table.slice({1, 1}, {2, 4}).flatten()));
  prog.add(Copy(stream, numbers));
  prog.add(Copy(stream, numbers));
  popops::mulInPlace(graph, numbers, 2.0f, prog, "double");
  prog.add(Copy(numbers, table.slice({3, 0}, {4, 3}).flatten()));

  Engine engine(graph, prog);
  engine.load(device);
  std::vector<float> host(16, -1.0f);
  engine.writeTensor("write-table", host.data(), host.data() + host.size());
  std::vector<float> fed{1, 2, 3, 4, 5, 6};
  engine.connectStream("numbers", fed.data(), fed.data() + fed.size());
  engine.run(0);
  engine.readTensor("read-table", host.data(), host.data() + host.size());
  CHECK_EQ(host[5], 1.0f);
  CHECK_EQ(host[7], 2.0f);
  CHECK_EQ(host[12], 8.0f);  // the second block of the stream, doubled
  CHECK_EQ(host[0], -1.0f);
  std::ostringstream summary;
  engine.printProfileSummary(summary, {{"showExecutionSteps", "true"}});
  CHECK(summary.str().find("Cycles") != std::string::npos);
}

TEST(a_program_that_counts_its_cycles) {
  Device device = IPUModel().createDevice();
  Graph graph(device.getTarget());
  popops::addCodelets(graph);
  Tensor x = graph.addVariable(FLOAT, {1000}, "x");
  poputil::mapTensorLinearly(graph, x);
  Sequence body;
  popops::addInPlace(graph, x, x, body);
  std::uint64_t counts[3];
  for (unsigned times : {0u, 1u, 5u}) {
    Sequence timed;
    timed.add(Repeat(times, body));
    Tensor count = cycleCount(graph, timed, 3, SyncType::INTERNAL);
    const std::string handle = "count" + std::to_string(times);
    graph.createHostRead(handle, count);
    Engine engine(graph, timed);
    engine.load(device);
    engine.run();
    std::uint64_t& cycles = counts[times == 5 ? 2 : times];
    engine.readTensor(handle, &cycles, &cycles + 1);
  }
  CHECK(counts[1] - counts[0] > 100);
  CHECK_EQ(counts[2] - counts[0], 5 * (counts[1] - counts[0]));
}

TEST(a_program_with_libraries) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  poplin::addCodelets(graph);
  Tensor a = graph.addVariable(FLOAT, {90, 60}, "a");
  poputil::mapTensorLinearly(graph, a);
  Tensor b = poplin::createMatMulInputRHS(graph, FLOAT, {90, 60}, {60, 30}, "b");
  Sequence prog;
  popops::fill(graph, a, prog, 1.0f, "ones");
  popops::fill(graph, b, prog, 2.0f, "twos");
  Tensor product = poplin::matMul(graph, a, b, prog, FLOAT, "product");
  Tensor sum = popops::reduce(graph, product, FLOAT, {0, 1}, popops::Operation::ADD, prog, "sum");
  graph.createHostRead("sum", sum);
  Engine engine(graph, prog);
  engine.load(device);
  engine.run();
  float got = 0;
  engine.readTensor("sum", &got, &got + 1);
  CHECK_EQ(got, 324000.0f);
}

TEST(names_of_vertex_templates) {
  CHECK_EQ(poputil::templateVertex("Plain"), "Plain");
  CHECK_EQ(poputil::templateVertex("Two", FLOAT, true, 3u), "Two<float,true,3>");
}
