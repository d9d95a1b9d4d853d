#include <cmath>
#include <numeric>

#include "Check.hpp"
#include "poplar/Engine.hpp"
#include "poplar/IPUModel.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popx/HalfOverflow.hpp"
#include "popx/HostCallback.hpp"
#include "popx/RemoteBuffer.hpp"

// Callbacks and remote buffers of popx/hardware, run by poplar::Engine.

using namespace poplar;

namespace {

struct OnModel {
  Graph graph{IPUModel().createDevice()};
  program::Sequence prog;

  Engine start() {
    Engine engine(graph, prog);
    engine.load(Device(graph.getTarget()));
    return engine;
  }
};

std::vector<float> counted(std::size_t n, float first) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST(a_callback_gets_operands_and_gives_results) {
  OnModel d;
  const auto a = d.graph.addVariable(FLOAT, {2, 3}, VariableMappingMethod::LINEAR, "a");
  const auto b = d.graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "b");
  d.graph.setInitialValue<float>(a, ArrayRef<float>(counted(6, 1)));
  d.graph.setInitialValue<int>(b, 10);
  const auto results =
      popx::hostCallback(d.graph, "scale", {a, b}, {"float32", "int32"},
                         {{"float32", {6}}, {"int32", {1}}, {"int8", {0}}}, d.prog);
  CHECK_EQ(results.size(), 3u);
  d.graph.createHostRead("scaled", results[0]);
  d.graph.createHostRead("count", results[1]);
  auto engine = d.start();
  engine.connectHostFunction("scale", 0, [](ArrayRef<const void*> in, ArrayRef<void*> out) {
    CHECK_EQ(in.size(), 2u);
    CHECK_EQ(out.size(), 2u);  // the third has no element
    const int factor = *static_cast<const int*>(in[1]);
    for (std::size_t i = 0; i < 6; ++i)
      static_cast<float*>(out[0])[i] =
          static_cast<const float*>(in[0])[i] * static_cast<float>(factor);
    *static_cast<int*>(out[1]) = 6;
  });
  engine.run();
  std::vector<float> scaled(6);
  int count = 0;
  engine.readTensor("scaled", scaled.data(), scaled.data() + 6);
  engine.readTensor("count", &count, &count + 1);
  CHECK_EQ(scaled[0], 10.0f);
  CHECK_EQ(scaled[5], 60.0f);
  CHECK_EQ(count, 6);
}

TEST(a_callback_without_arrays_is_called) {
  OnModel d;
  const auto none = d.graph.addVariable(FLOAT, {0}, VariableMappingMethod::LINEAR, "none");
  CHECK_EQ(popx::hostCallback(d.graph, "tick", {none}, {"float32"}, {}, d.prog).size(), 0u);
  auto engine = d.start();
  int calls = 0;
  engine.connectHostFunction("tick", 0, [&](ArrayRef<const void*> in, ArrayRef<void*> out) {
    CHECK(in.empty());
    CHECK_EQ(out.size(), 1u);
    *static_cast<unsigned*>(out[0]) = 0;
    ++calls;
  });
  engine.run();
  engine.run();
  CHECK_EQ(calls, 2);
}

TEST(dtypes_of_callbacks_have_a_type_or_are_refused) {
  CHECK(popx::typeOfDtype("bfloat16") == UNSIGNED_SHORT);
  CHECK(popx::typeOfDtype("float16") == HALF);
  CHECK_THROWS(popx::typeOfDtype("complex64"), "got complex64");
  OnModel d;
  const auto a = d.graph.addVariable(FLOAT, {2}, VariableMappingMethod::LINEAR, "a");
  CHECK_THROWS(popx::hostCallback(d.graph, "f", {a}, {"int32"}, {}, d.prog), "of their dtype");
  CHECK_THROWS(popx::hostCallback(d.graph, "f", {a}, {}, {}, d.prog), "one dtype per operand");
}

TEST(remote_buffers_copy_wholes_and_entries) {
  OnModel d;
  const auto stack = d.graph.addRemoteBuffer("stack", FLOAT, 6, 4);
  const auto copy = d.graph.addRemoteBuffer("copy", FLOAT, 12, 2);
  const auto one = d.graph.addRemoteBuffer("one", FLOAT, 3, 2);
  const auto at = d.graph.addConstant<unsigned>(UNSIGNED_INT, {1}, 2u);
  const auto to = d.graph.addConstant<unsigned>(UNSIGNED_INT, {1}, 0u);
  d.graph.setTileMapping(at, 0);
  d.graph.setTileMapping(to, 0);
  popx::copyRemoteBuffer(d.graph, stack, copy, d.prog);
  popx::readEntry(d.graph, stack, one, at, d.prog);
  popx::writeEntry(d.graph, one, stack, to, d.prog);
  auto engine = d.start();
  for (unsigned i = 0; i < 4; ++i)
    engine.copyToRemoteBuffer(counted(6, static_cast<float>(6 * i)).data(), "stack", i);
  engine.run();
  std::vector<float> got(12);
  engine.copyFromRemoteBuffer("copy", got.data(), 1);
  CHECK(got == counted(12, 12));
  got.resize(6);
  engine.copyFromRemoteBuffer("stack", got.data(), 0);
  CHECK(got == counted(6, 12));
  engine.copyFromRemoteBuffer("stack", got.data(), 1);
  CHECK(got == counted(6, 6));
  CHECK_THROWS(popx::copyRemoteBuffer(d.graph, stack, one, d.prog), "one size and type");
  CHECK_THROWS(popx::readEntry(d.graph, stack, copy, at, d.prog), "size and type of an entry");
}

TEST(remote_buffers_in_other_entries_are_copies) {
  OnModel d;
  const auto buffer = d.graph.addRemoteBuffer("buffer", INT, 6, 4);
  const auto rows = popx::withRepeats(d.graph, buffer, 6, "rows", d.prog);
  CHECK_EQ(rows.handle(), std::string("rows"));
  CHECK_EQ(rows.numElements(), 4u);
  CHECK(popx::withRepeats(d.graph, buffer, 4, "same", d.prog) == buffer);
  auto engine = d.start();
  std::vector<int> values(24), got(4);
  std::iota(values.begin(), values.end(), 100);
  for (unsigned i = 0; i < 4; ++i) engine.copyToRemoteBuffer(values.data() + 6 * i, "buffer", i);
  engine.run();
  for (unsigned i = 0; i < 6; ++i) {
    engine.copyFromRemoteBuffer("rows", got.data(), i);
    CHECK(std::equal(got.begin(), got.end(), values.begin() + 4 * i));
  }
  CHECK_THROWS(popx::withRepeats(d.graph, buffer, 5, "fifths", d.prog), "a number that divides");
}

TEST(the_host_fills_remote_buffers_itself) {
  OnModel d;
  const auto buffer = d.graph.addRemoteBuffer("buffer", FLOAT, 3, 2);
  const auto in = d.graph.addHostToDeviceFIFO("in", FLOAT, 6);
  const auto out = d.graph.addDeviceToHostFIFO("out", FLOAT, 6);
  popx::fillFromHost(in, buffer, d.prog);
  popx::giveToHost(buffer, out, d.prog);
  CHECK(d.prog.isEmpty());
  const auto small = d.graph.addDeviceToHostFIFO("small", FLOAT, 5);
  CHECK_THROWS(popx::giveToHost(buffer, small, d.prog), "needs the 6 elements of float");
}

TEST(halves_overflow_as_they_are_told) {
  OnModel d;
  const auto x = d.graph.addVariable(HALF, {2}, VariableMappingMethod::LINEAR, "x");
  d.graph.setInitialValue<float>(x, ArrayRef<float>({60000.0F, -60000.0F}));
  const auto doubled = [&](const std::string& behaviour) {
    popx::setHalfOverflow(d.graph, behaviour, d.prog);
    const auto y = popops::cast(d.graph, popops::add(d.graph, x, x, d.prog), FLOAT, d.prog);
    d.graph.createHostRead(behaviour, y);
  };
  doubled("infinity");
  doubled("saturate");
  doubled("nan");
  CHECK_THROWS(popx::setHalfOverflow(d.graph, "wrap", d.prog), "got wrap");
  auto engine = d.start();
  engine.run();
  const auto read = [&](const std::string& behaviour) {
    std::vector<float> got(2);
    engine.readTensor(behaviour, got.data(), got.data() + 2);
    return got;
  };
  CHECK(read("infinity") == (std::vector<float>{INFINITY, -INFINITY}));
  CHECK(read("saturate") == (std::vector<float>{65504, -65504}));
  CHECK(std::isnan(read("nan")[0]) && std::isnan(read("nan")[1]));
}
