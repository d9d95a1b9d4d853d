#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "Check.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "popops/ElementWise.hpp"
#include "popx/RemoteBuffer.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr std::size_t kElements = 6;
constexpr std::size_t kRepeats = 4;

/// A buffer, a tensor for one of its entries, and the index of an entry.
struct Buffered {
  Graph graph{IPUModel().createDevice()};
  RemoteBuffer buffer = graph.addRemoteBuffer("stack", FLOAT, kElements, kRepeats);
  Tensor entry = graph.addVariable(FLOAT, {kElements}, VariableMappingMethod::LINEAR, "entry");
  Tensor at = graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "at");
  Sequence prog;

  Buffered() {
    graph.createHostWrite("entry", entry);
    graph.createHostRead("entry", entry);
    graph.setInitialValue<unsigned>(at, 0);
  }
  Engine start() {
    Engine engine(graph, prog);
    engine.load(Device(graph.getTarget()));
    return engine;
  }
  ipujax::engine::Cost cost() { return compileGraph(graph, {prog}).image()->cost(); }
};

std::vector<float> read(Engine& engine, const char* buffer, std::size_t entry) {
  std::vector<float> values(kElements);
  engine.copyFromRemoteBuffer(buffer, values.data(), entry);
  return values;
}

}  // namespace

TEST(each_round_writes_an_entry_and_each_keeps_its_values) {
  Buffered b;
  const Tensor one = b.graph.addConstant<float>(FLOAT, {}, 1.0f);
  const Tensor next = b.graph.addConstant<unsigned>(UNSIGNED_INT, {1}, 1u);
  Sequence body;
  body.add(Copy(b.entry, b.buffer, b.at));
  popops::addInPlace(b.graph, b.entry, one, body);
  popops::addInPlace(b.graph, b.at, next, body);
  b.prog.add(Repeat(kRepeats, body));
  Engine engine = b.start();
  std::vector<float> values(kElements);
  std::iota(values.begin(), values.end(), 10.0f);
  engine.writeTensor("entry", values.data(), values.data() + kElements);
  engine.run();
  for (std::size_t r = 0; r < kRepeats; ++r)
    CHECK_EQ(read(engine, "stack", r)[2], 12.0f + static_cast<float>(r));
}

TEST(several_entries_are_one_transfer_in_the_order_of_the_offsets) {
  Buffered b;
  const Tensor pair =
      b.graph.addVariable(FLOAT, {2, kElements}, VariableMappingMethod::LINEAR, "pair");
  const unsigned entries[] = {3, 1};
  const Tensor offsets = b.graph.addConstant<unsigned>(UNSIGNED_INT, {2}, entries);
  b.graph.createHostRead("pair", pair);
  b.prog.add(Copy(b.buffer, pair, offsets));
  Engine engine = b.start();
  for (std::size_t r = 0; r < kRepeats; ++r)
    engine.copyToRemoteBuffer(std::vector<float>(kElements, static_cast<float>(r)).data(), "stack",
                              r);
  engine.run();
  std::vector<float> got(2 * kElements);
  engine.readTensor("pair", got.data(), got.data() + got.size());
  CHECK_EQ(got.front(), 3.0f);
  CHECK_EQ(got.back(), 1.0f);
  const Target& target = b.graph.getTarget();
  const double bytes = 2 * kElements * sizeof(float);
  CHECK_EQ(b.cost().link_bytes, bytes);
  CHECK_EQ(b.cost().cycles(), 2.0 * target.getGlobalSyncCycles() +
                                  std::ceil(bytes / target.machine().streaming_bytes_per_second *
                                            target.getTileClockFrequency()));
}

TEST(streams_take_the_time_of_the_link_to_the_host) {
  Buffered b;
  constexpr std::size_t kMany = 100'000;
  const Tensor tensor =
      b.graph.addVariable(FLOAT, {kMany}, VariableMappingMethod::LINEAR, "streamed");
  b.graph.createHostWrite("between runs", tensor);
  CHECK_EQ(b.cost().host_bytes, 0.0);
  const DataStream stream = b.graph.addHostToDeviceFIFO("in", FLOAT, kMany);
  b.prog.add(Repeat(5, Copy(stream, tensor)));
  const ipujax::engine::Cost cost = b.cost();
  const Target& target = b.graph.getTarget();
  const double seconds = kMany * sizeof(float) / target.machine().host_bytes_per_second;
  CHECK_EQ(cost.host_bytes, 5.0 * kMany * sizeof(float));
  CHECK_EQ(cost.host_cycles, 5 * std::ceil(seconds * target.getTileClockFrequency()));
}

TEST(buffers_take_no_tile_memory_and_have_a_capacity) {
  Buffered b;
  b.prog.add(Copy(b.entry, b.buffer, b.at));
  const auto without = compileGraph(b.graph, {b.prog}).image();
  const std::size_t gigabyte = std::size_t{1} << 28;
  const Tensor row = b.graph.addConstant<float>(FLOAT, {1}, 0.0f).broadcast(gigabyte, 0);
  for (int i = 0; i < 16; ++i)
    b.prog.add(Copy(row, b.graph.addRemoteBuffer(std::to_string(i), FLOAT, gigabyte)));
  const auto with = compileGraph(b.graph, {b.prog}).image();
  const auto data_bytes = [](const auto& image) {
    return image->memory.worst_tile_bytes - image->memory.code_bytes;
  };
  CHECK(data_bytes(with) < data_bytes(without) + 100);
  CHECK(without->streaming.fits());
  CHECK(!with->streaming.fits());
  CHECK_THROWS(compileGraph(b.graph, {b.prog}, {{"debug.outOfMemory", "error"}}),
               "streaming memory");
}

TEST(copies_of_buffers_pass_through_an_ipu) {
  Buffered b;
  const RemoteBuffer first = b.graph.addRemoteBuffer("first", FLOAT, kElements);
  const RemoteBuffer second = b.graph.addRemoteBuffer("second", FLOAT, kElements);
  popx::copyRemoteBuffer(b.graph, first, second, b.prog);
  popx::writeEntry(b.graph, second, b.buffer, b.at, b.prog);
  popx::readEntry(b.graph, b.buffer, first, b.at, b.prog);
  CHECK_EQ(b.cost().link_bytes, 6.0 * kElements * sizeof(float));
  Engine engine = b.start();
  engine.copyToRemoteBuffer(std::vector<float>(kElements, 5.0f).data(), "first", 0);
  engine.run();
  CHECK_EQ(read(engine, "stack", 0)[1], 5.0f);
}

TEST(entries_are_the_nearest_for_popx) {
  Buffered b;
  const Tensor beyond = b.graph.addConstant<int>(INT, {1}, 99);
  b.graph.setTileMapping(beyond, 0);
  popx::readEntry(b.graph, b.buffer, b.entry, beyond, b.prog);
  const Tensor before = b.graph.addConstant<int>(INT, {1}, -5);
  b.graph.setTileMapping(before, 0);
  popx::writeEntry(b.graph, b.entry, b.buffer, before, b.prog);
  Engine engine = b.start();
  engine.copyToRemoteBuffer(std::vector<float>(kElements, 5.0f).data(), "stack", kRepeats - 1);
  engine.run();
  CHECK_EQ(read(engine, "stack", 0)[1], 5.0f);
}

TEST(bad_copies_and_buffers_are_refused) {
  Buffered b;
  CHECK_THROWS(Copy(b.entry, b.buffer), "4 entries of 6");
  CHECK_THROWS(Copy(b.buffer, b.at, b.at), "float");
  CHECK_THROWS(Copy(b.buffer, b.entry, b.entry), "integer offsets");
  CHECK_THROWS(b.graph.addRemoteBuffer("stack", FLOAT, 1), "new handle");
  CHECK_THROWS(b.graph.addRemoteBuffer("none", FLOAT, 0), "at least one element");
}
