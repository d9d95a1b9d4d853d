#include <chrono>
#include <condition_variable>
#include <mutex>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/RuntimeOptions.hpp>
#include <popops/ElementWise.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "Fixture.hpp"

/// Callbacks of several replicas: in turn, or on a thread for each (streamCallbacks.*).
using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kReplicas = 3;
const OptionFlags kThreads{{"streamCallbacks.multiThreadMode", "dedicated"},
                           {"streamCallbacks.numWorkerThreads", "auto"}};
const OptionFlags kOneThread{{"streamCallbacks.multiThreadMode", "singleThread"}};

/// Callbacks wait here until all replicas have arrived. `wait` returns whether they did.
class Meeting {
 public:
  bool wait() {
    std::unique_lock lock(mutex_);
    const unsigned round = come_++ / kReplicas;
    if (come_ % kReplicas == 0) changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return come_ >= (round + 1) * kReplicas; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned come_ = 0;
};

/// x = 0 + the values of "in" in 4 turns, each passed through the host function "f".
struct Looping {
  Device device = Fixture::modelOf(8, kReplicas);
  Graph graph{device, replication_factor(kReplicas)};
  Sequence prog;
  Tensor x = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "x");

  explicit Looping(ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE) {
    const auto in = graph.addHostToDeviceFIFO("in", FLOAT, 1, mode);
    const HostFunction f = graph.addHostFunction("f", {{FLOAT, 1}}, {{FLOAT, 1}});
    const Tensor block = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "block");
    graph.setInitialValue(x, 0.0f);
    graph.createHostRead("x", x);
    Sequence body{Copy(in, block), Call(f, {block}, {block})};
    popops::addInPlace(graph, x, block, body);
    prog.add(Repeat(4, body));
  }
  Engine start(const OptionFlags& options) {
    Engine engine(graph, prog, options);
    engine.load(device);
    return engine;
  }
  static std::vector<float> read(Engine& engine) {
    std::vector<float> values(kReplicas);
    engine.readTensor("x", values.data(), values.data() + values.size());
    return values;
  }
};

/// Adds 10 to the value of each replica once all have arrived.
void connectFunctions(Engine& engine, Meeting& meeting) {
  for (unsigned i = 0; i < kReplicas; ++i) {
    engine.connectHostFunction("f", i, [&](ArrayRef<const void*> ins, ArrayRef<void*> outs) {
      if (!meeting.wait()) throw std::runtime_error("the others did not come");
      *static_cast<float*>(outs[0]) = *static_cast<const float*>(ins[0]) + 10;
    });
  }
}

/// Also sends each replica its number.
void connect(Engine& engine, Meeting& meeting) {
  for (unsigned i = 0; i < kReplicas; ++i)
    engine.connectStreamToCallback(
        "in", i, [i](void* p) { *static_cast<float*>(p) = static_cast<float>(i); });
  connectFunctions(engine, meeting);
}

}  // namespace

TEST(callbacks_wait_for_each_other_where_they_have_threads) {
  Looping program;
  Meeting meeting;
  Engine engine = program.start(kThreads);
  connect(engine, meeting);
  engine.run();
  CHECK(Looping::read(engine) == (std::vector<float>{40, 44, 48}));
}

TEST(a_run_can_have_other_threads_than_its_engine) {
  Looping program;
  Meeting meeting;
  Engine engine = program.start(kOneThread);
  connect(engine, meeting);
  engine.run(0, "", RuntimeOptions(kThreads));
  CHECK(Looping::read(engine) == (std::vector<float>{40, 44, 48}));
  // In turn, on this thread: replica 0 is done before the next one begins.
  std::vector<unsigned> order;
  const auto here = std::this_thread::get_id();
  bool is_here = true;
  for (unsigned i = 0; i < kReplicas; ++i)
    engine.connectHostFunction("f", i, [&, i](ArrayRef<const void*>, ArrayRef<void*>) {
      order.push_back(i);
      is_here = is_here && std::this_thread::get_id() == here;
    });
  engine.run();
  CHECK(order == (std::vector<unsigned>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  CHECK(is_here);
}

TEST(without_workers_the_engines_thread_calls_in_every_mode) {
  Looping program;
  Engine engine = program.start({{"streamCallbacks.multiThreadMode", "collaborative"}});
  const auto here = std::this_thread::get_id();
  bool is_here = true;
  for (unsigned i = 0; i < kReplicas; ++i) {
    engine.connectStreamToCallback(
        "in", i, [&](void*) { is_here = is_here && std::this_thread::get_id() == here; });
    engine.connectHostFunction("f", i, [](ArrayRef<const void*>, ArrayRef<void*>) {});
  }
  engine.run();
  CHECK(is_here);
}

TEST(a_block_that_is_broadcast_is_made_once_for_all_threads) {
  Looping program(ReplicatedStreamMode::BROADCAST);
  Meeting meeting;
  Engine engine = program.start(kThreads);
  connectFunctions(engine, meeting);
  unsigned made = 0;
  engine.connectStreamToCallback(
      "in", [&](void* p) { *static_cast<float*>(p) = static_cast<float>(++made); });
  engine.run();
  CHECK_EQ(made, 4u);
  CHECK(Looping::read(engine) == (std::vector<float>{50, 50, 50}));
}

TEST(an_error_of_one_thread_ends_the_run_of_all_and_the_next_one_works) {
  Looping program;
  Meeting meeting;
  Engine engine = program.start(kThreads);
  connect(engine, meeting);
  const auto nothing = [](ArrayRef<const void*>, ArrayRef<void*>) {};
  for (unsigned i = 0; i < kReplicas; ++i) engine.connectHostFunction("f", i, nothing);
  engine.connectHostFunction("f", 1, [](ArrayRef<const void*>, ArrayRef<void*>) {
    throw std::runtime_error("no more data");
  });
  CHECK_THROWS(engine.run(), "no more data");
  connect(engine, meeting);
  engine.load(program.device);
  engine.run();
  CHECK(Looping::read(engine) == (std::vector<float>{40, 44, 48}));
}

TEST(values_of_the_options_of_threads_are_checked) {
  Looping program;
  CHECK_THROWS(program.start({{"streamCallbacks.multiThreadMode", "many"}}), "singleThread");
  CHECK_THROWS(program.start({{"streamCallbacks.numWorkerThreads", "some"}}), "auto or a number");
  Engine engine = program.start({});
  CHECK_THROWS(engine.run(0, "", RuntimeOptions({{"streamCallbacks.multiThreadMode", "many"}})),
               "singleThread");
}
