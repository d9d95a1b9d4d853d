#include <cstdlib>
#include <functional>

#include "Check.hpp"
#include "backends/poplar/Container.hpp"
#include "backends/poplar/Devices.hpp"
#include "backends/poplar/KeptArguments.hpp"
#include "backends/poplar/Program.hpp"
#include "poplar/DeviceManager.hpp"
#include "popx/HostCallback.hpp"
#include "runtime/Backend.hpp"
#include "support/HostCallbacks.hpp"

// Programs of a build against an SDK, compiled, sealed, opened and run without JAX.

using namespace ipujax;
using poplar_backend::Container;
using runtime::ExecutableError;

namespace {

std::span<const std::byte> bytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

runtime::TensorSpec floats(std::int64_t n) {
  runtime::TensorSpec spec;
  spec.dtype = "float32";
  spec.shape = {n};
  spec.bytes = static_cast<std::uint64_t>(n) * 4;
  return spec;
}

/// out0 = what the host function makes of in0, four floats.
std::string compiled() {
  poplar::Graph graph(poplar::Target::createIPUTarget(1, 8, "ipu2"));
  poplar::program::Sequence prog;
  const auto x = graph.addVariable(poplar::FLOAT, {4}, poplar::VariableMappingMethod::LINEAR, "x");
  prog.add(poplar::program::Copy(graph.addHostToDeviceFIFO("in0", poplar::FLOAT, 4), x));
  const auto y =
      popx::hostCallback(graph, "f #0", {x}, {"float32"}, {{"float32", {4}}}, prog).at(0);
  prog.add(poplar::program::Copy(y, graph.addDeviceToHostFIFO("out0", poplar::FLOAT, 4)));
  Container container;
  container.signature.name = "f";
  container.signature.inputs = container.signature.outputs = {floats(4)};
  container.signature.output_alias = {-1};
  container.signature.has_host_callbacks = true;
  container.host_calls = {{"f #0", "f", {{"float32", {4}}}, {{"float32", {4}}}}};
  container.text = "module";
  return poplar_backend::compile(graph, prog, container);
}

/// Sealed again after a change that its reader must refuse.
std::string changed(const std::function<void(Container&)>& change) {
  Container container = Container::open(bytesOf(compiled()));
  change(container);
  return container.seal();
}

class Doubling final : public runtime::HostCallbacks {
 public:
  void call(const std::string& id, std::span<const runtime::HostArray> arguments,
            std::span<const runtime::HostArray> results) override {
    if (fails) throw std::invalid_argument("no such value");
    CHECK_EQ(id, "f");
    for (int i = 0; i < 4; ++i)
      static_cast<float*>(results[0].data)[i] = 2 * static_cast<float*>(arguments[0].data)[i];
  }
  bool fails = false;
};

}  // namespace

TEST(a_sealed_program_is_opened_and_runs) {
  setenv("IPUJAX_MODEL_AS_IPU", "1", 1);
  const auto program = runtime::openProgram(bytesOf(compiled()));
  CHECK_EQ(program->text(), "module");
  const auto again = runtime::openProgram(bytesOf(program->serialise({0}, "IPU")));
  CHECK(again->signature().device_ids == std::vector<std::int32_t>{0});
  const auto state = runtime::makeDeviceState({.first_ipu = 0, .num_ipus = 1, .tiles_per_ipu = 8});
  const auto session = again->open({state}, nullptr);
  const float x[] = {1, 2, 3, 4};
  float y[4] = {};
  const void* inputs[] = {x};
  void* outputs[] = {y};
  const runtime::Arrays arrays{inputs, outputs};
  Doubling host;
  session->run({&arrays, 1}, &host, {});
  CHECK_EQ(y[3], 8.0f);
  host.fails = true;
  CHECK_THROWS(session->run({&arrays, 1}, &host, {}), "no such value");
  host.fails = false;
  y[3] = 0;
  session->run({&arrays, 1}, &host, {});  // the error of one run does not end the next
  CHECK_EQ(y[3], 8.0f);
  CHECK_THROWS(again->openNested(), "needs devices that are free");
}

TEST(altered_bytes_are_refused) {
  const std::string sealed = compiled();
  for (std::size_t i = 0; i < sealed.size(); i += 97) {
    std::string altered = sealed;
    altered[i] = static_cast<char>(altered[i] ^ 16);
    CHECK_THROWS(Container::open(bytesOf(altered)), "[Executable]");
    CHECK_THROWS(Container::open(bytesOf(sealed.substr(0, i))), "[Executable]");
  }
}

TEST(contents_that_no_run_could_follow_are_refused) {
  const auto refused = [](const std::function<void(Container&)>& change, const char* why) {
    CHECK_THROWS(Container::open(bytesOf(changed(change))), why);
  };
  refused([](Container& c) { c.tiles_per_ipu = 0; }, "an IPU has no tile");
  refused([](Container& c) { c.ipus_per_replica = -1; }, "a replica has no IPU");
  refused([](Container& c) { c.host_calls.clear(); }, "the host functions are not");
  refused([](Container& c) { c.host_calls.push_back(c.host_calls[0]); }, "one handle");
  refused([](Container& c) { c.host_calls[0].results[0].shape = {1 << 30, 1 << 30}; }, "too large");
  refused([](Container& c) { c.remote_inputs = {{1, "remote", 1}}; }, "holds no argument");
  refused([](Container& c) { c.remote_outputs = {{0, "remote", 3}}; }, "no whole entries");
  refused([](Container& c) { c.kept_inputs = {1}; }, "an argument that is kept is none");
  refused([](Container& c) { c.kept_inputs = {0, 0}; }, "named twice");
  refused([](Container& c) { c.signature.outputs[0].bytes = 1ull << 60; }, "too large");
  const std::string other = changed([](Container& c) { c.executable = "not Poplar's"; });
  CHECK_THROWS(runtime::openProgram(bytesOf(other)), "needs an executable of this SDK");
}

TEST(arguments_are_read_again_where_they_have_changed) {
  // Two replicas of f(a, b) -> (c, d), where c takes over b; a and b are kept.
  Container container;
  container.signature.output_alias = {1, -1};
  container.kept_inputs = {0, 1};
  poplar_backend::KeptArguments kept(container);
  using Numbers = std::vector<std::uint64_t>;
  using Fresh = std::vector<std::int32_t>;
  const auto run = [&](const Numbers& in0, const Numbers& in1, const Numbers& out0,
                       const Numbers& out1) {
    const runtime::Arrays arrays[] = {{{}, {}, in0, out0}, {{}, {}, in1, out1}};
    kept.choose(arrays);
    const Fresh fresh = kept.fresh();
    kept.remember(arrays);
    return fresh;
  };
  CHECK(run({1, 2}, {3, 4}, {5, 6}, {7, 8}) == Fresh({1, 1}));
  CHECK(run({1, 5}, {3, 7}, {9, 10}, {11, 12}) == Fresh({0, 0}));      // b is the last run's c
  CHECK(run({1, 5}, {3, 7}, {13, 14}, {15, 16}) == Fresh({0, 1}));     // and now no longer
  CHECK(run({1, 13}, {99, 15}, {17, 18}, {19, 20}) == Fresh({1, 0}));  // one replica's a is new
  kept.forget();
  CHECK(run({1, 17}, {99, 19}, {21, 22}, {23, 24}) == Fresh({1, 1}));
  CHECK(run({}, {}, {}, {}) == Fresh({1, 1}));  // nothing is known of the arrays
  CHECK(run({1, 21}, {99, 23}, {25, 26}, {27, 28}) == Fresh({1, 1}));
}

TEST(devices_must_follow_one_another) {
  const auto range = [](std::initializer_list<std::int64_t> firsts) {
    runtime::DeviceStates states;
    for (const auto first : firsts)
      states.push_back(runtime::makeDeviceState({.first_ipu = first, .num_ipus = 2}));
    return poplar_backend::rangeOf(states, 2);
  };
  CHECK_EQ(range({4}).first, 4);
  CHECK_EQ(range({6, 4}).num, 4);
  CHECK_THROWS(range({2, 4}), "from a multiple of their number (4) on");
  CHECK_THROWS(range({0, 4}), "follow one another");
}
