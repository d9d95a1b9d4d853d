#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "engine/HostCallbacks.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/run/ReplicaThreads.hpp"
#include "engine/run/Session.hpp"

namespace engine = ipujax::engine;

namespace {

using engine::NodeKind;

float& at(std::byte* pointer) { return *reinterpret_cast<float*>(pointer); }

/// x += replica + 1, after a random delay.
std::unique_ptr<engine::Kernel> makeSlowAdd(const engine::StepDesc&) {
  return engine::kernelOf([](engine::RunContext& context, std::span<std::byte* const> p) {
    static thread_local std::minstd_rand random(
        static_cast<unsigned>(std::hash<std::thread::id>()(std::this_thread::get_id())));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20));
    at(p[0]) += static_cast<float>(context.replica + 1);
  });
}

/// Sets x of all replicas to a weighted sum of all, in the order of replicas.
struct Sum final : engine::CollectiveKernel {
  void meet(engine::RunContext&, engine::ReplicaPointers replicas) const override {
    float sum = 0;
    for (const auto& pointers : replicas) sum = sum * 0.7F + at(pointers[0]);
    for (const auto& pointers : replicas) at(pointers[0]) = sum;
  }
  std::unique_ptr<engine::PeerStep> amongProcesses(const ipujax::runtime::Peers&) const override {
    throw std::logic_error("this test has one process");
  }
};
std::unique_ptr<engine::Kernel> makeSum(const engine::StepDesc&) { return std::make_unique<Sum>(); }

/// flag = x < 10
std::unique_ptr<engine::Kernel> makeBelowTen(const engine::StepDesc&) {
  return engine::kernelOf([](engine::RunContext&, std::span<std::byte* const> p) {
    *reinterpret_cast<std::uint8_t*>(p[1]) = at(p[0]) < 10 ? 1 : 0;
  });
}

std::unique_ptr<engine::Kernel> makeFailOnTwo(const engine::StepDesc&) {
  return engine::kernelOf([](engine::RunContext& context, std::span<std::byte* const> p) {
    if (at(p[0]) < 0 && context.replica == 2) throw std::runtime_error("replica 2 has had enough");
  });
}

/// Replaces x by the result of the host's function.
struct Call final : engine::Kernel {
  bool callsHost() const override { return true; }
  void run(engine::RunContext& context, std::span<std::byte* const> p) const override {
    const engine::HostArray x{"float32", {}, p[0]};
    context.callbacks->call("call", {&x, 1}, {&x, 1});
  }
};
std::unique_ptr<engine::Kernel> makeCall(const engine::StepDesc&) {
  return std::make_unique<Call>();
}

void anything(engine::StepCheck&) {}

const engine::RegisterKernel kCall{"test.call", makeCall, anything};
const engine::RegisterKernel kSlowAdd{"test.slow_add", makeSlowAdd, anything};
const engine::RegisterKernel kSum{"test.sum", makeSum, anything};
const engine::RegisterKernel kBelowTen{"test.below_ten", makeBelowTen, anything};
const engine::RegisterKernel kFailOnTwo{"test.fail_on_two", makeFailOnTwo, anything};

/// A program on x, one float per replica that is updated in place, and a flag.
struct Builder {
  engine::Image image;

  explicit Builder(std::uint32_t num_replicas) {
    image.signature.name = "f";
    image.signature.num_replicas = num_replicas;
    image.signature.inputs.push_back({"float32", {1}, 4, {}});
    image.signature.outputs.push_back({"float32", {1}, 4, {}});
    image.signature.output_alias = {0};
    image.buffers = {{engine::BufferKind::kInputOutput, 4, 0, 0, 0},
                     {engine::BufferKind::kArena, 1, 0, 0, 0}};
    image.arena_bytes = 64;
    image.debug.push_back({"test step", "gang.py:7"});
    image.nodes.emplace_back();
  }

  static engine::OperandDesc x() {
    return {0, engine::ElementType::kFloat, engine::Access::kReadWrite, 0, {1}, {1}};
  }
  static engine::OperandDesc flag(engine::Access access = engine::Access::kReadWrite) {
    return {1, engine::ElementType::kBool, access, 0, {}, {}};
  }
  std::uint32_t node(NodeKind kind, std::vector<std::uint32_t> children = {}) {
    engine::Node made;
    made.kind = kind;
    made.children = std::move(children);
    image.nodes.push_back(std::move(made));
    return static_cast<std::uint32_t>(image.nodes.size() - 1);
  }
  std::uint32_t step(const std::string& kernel) {
    engine::StepDesc made;
    made.kernel = kernel;
    made.operands = {x(), flag()};
    image.steps.push_back(std::move(made));
    const auto index = node(NodeKind::kStep);
    image.nodes[index].value = image.steps.size() - 1;
    return index;
  }
  /// Children must come after their parent in the list: a loop is made before its body.
  std::uint32_t whileFlag(const std::vector<std::string>& condition,
                          const std::vector<std::string>& body) {
    const auto loop = node(NodeKind::kRepeatWhile);
    const auto first = sequence(condition);
    const auto second = sequence(body);
    image.nodes[loop].children = {first, second};
    image.nodes[loop].value = 1;
    image.nodes[loop].predicate = flag(engine::Access::kRead);
    return loop;
  }
  std::uint32_t sequence(const std::vector<std::string>& kernels) {
    const auto made = node(NodeKind::kSequence);
    for (const auto& kernel : kernels) {
      const auto child = step(kernel);
      image.nodes[made].children.push_back(child);
    }
    return made;
  }
  void root(std::vector<std::uint32_t> children) { image.nodes[0].children = std::move(children); }

  engine::Session session() {
    std::vector<std::shared_ptr<engine::DeviceMemory>> memories;
    for (std::uint32_t r = 0; r < image.signature.num_replicas; ++r)
      memories.push_back(std::make_shared<engine::DeviceMemory>());
    const std::string sealed = image.serialise();  // so that the checks of a loaded image apply
    return {engine::Image::deserialise(std::as_bytes(std::span(sealed))), std::move(memories)};
  }
};

std::vector<float> run(engine::Session& session, std::vector<float> x,
                       engine::HostCallbacks* callbacks = nullptr) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (auto& value : x) {
    inputs.push_back(&value);
    outputs.push_back(&value);
  }
  std::vector<engine::Arrays> arrays;
  for (std::size_t r = 0; r < x.size(); ++r) arrays.push_back({{&inputs[r], 1}, {&outputs[r], 1}});
  session.run(arrays, callbacks);
  return x;
}

/// The host's function of x.
class Host final : public engine::HostCallbacks {
 public:
  explicit Host(std::function<float(float)> function, bool many_threads = true)
      : function_(std::move(function)), many_threads_(many_threads) {}
  void call(const std::string&, std::span<const engine::HostArray> arguments,
            std::span<const engine::HostArray> results) override {
    *static_cast<float*>(results[0].data) =
        function_(*static_cast<const float*>(arguments[0].data));
  }
  bool takesManyThreads() const override { return many_threads_; }
  void failed(const std::exception_ptr&) noexcept override { told = true; }

  std::atomic<bool> told{false};

 private:
  std::function<float(float)> function_;
  bool many_threads_;
};

/// Holds callers until `count` of them have arrived; reusable.
class Barrier {
 public:
  explicit Barrier(int count) : count_(count) {}
  void wait() {
    std::unique_lock lock(mutex_);
    const int round = round_;
    if (++waiting_ == count_) {
      waiting_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round; });
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int count_;
  int waiting_ = 0;
  int round_ = 0;
};

std::string text(const std::vector<float>& values) {
  std::string all;
  for (const float value : values) all += std::to_string(value) + " ";
  return all;
}

}  // namespace

TEST(replicas_know_their_number_and_meet) {
  Builder b(4);
  b.root({b.sequence({"test.slow_add", "test.sum", "test.slow_add"})});
  auto session = b.session();
  const float sum = ((1 * 0.7F + 2) * 0.7F + 3) * 0.7F + 4;
  CHECK_EQ(text(run(session, {0, 0, 0, 0})), text({sum + 1, sum + 2, sum + 3, sum + 4}));
}

TEST(loops_without_a_meeting_end_when_each_replica_likes) {
  Builder b(3);
  b.root({b.whileFlag({"test.below_ten"}, {"test.slow_add"})});
  auto session = b.session();
  CHECK_EQ(text(run(session, {0, 0, 1})), text({10, 10, 10}));
}

TEST(loops_around_a_meeting_go_on_together) {
  Builder b(2);
  b.root({b.whileFlag({"test.below_ten"}, {"test.slow_add", "test.sum"})});
  auto session = b.session();
  const auto x = run(session, {0, 0});
  CHECK_EQ(x[0], x[1]);
  CHECK(x[0] >= 10);
}

TEST(a_condition_that_differs_around_a_meeting_is_an_error) {
  Builder b(3);
  b.root({b.whileFlag({"test.below_ten"}, {"test.sum"})});
  auto session = b.session();
  CHECK_THROWS(run(session, {0, 0, 11}), "got a condition that is 1 on replica 0 and 0 on");
  CHECK_THROWS(run(session, {0, 0, 11}), "around test step (gang.py:7)");
  CHECK_EQ(text(run(session, {11, 11, 11})), text({11, 11, 11}));
}

TEST(a_replica_that_fails_ends_the_run_and_the_next_one_works) {
  Builder b(4);
  b.root({b.sequence({"test.slow_add", "test.fail_on_two", "test.sum"})});
  auto session = b.session();
  CHECK_THROWS(run(session, {-9, -9, -9, -9}), "replica 2 has had enough");
  CHECK_EQ(run(session, {0, 0, 0, 0})[3], ((1 * 0.7F + 2) * 0.7F + 3) * 0.7F + 4);
}

TEST(a_cancelled_run_ends_and_the_next_one_works) {
  Builder b(2);
  b.root({b.whileFlag({"test.below_ten"}, {"test.fail_on_two"})});
  auto session = b.session();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    session.cancel();
  });
  CHECK_THROWS(run(session, {0, 0}), "cancelled");
  other.join();
  CHECK_EQ(text(run(session, {11, 12})), text({11, 12}));
}

TEST(memory_and_arrays_must_be_there_for_every_replica) {
  Builder b(3);
  b.root({b.sequence({"test.sum"})});
  auto session = b.session();
  CHECK_THROWS(run(session, {0, 0}), "needs arrays for 3 replicas; got them for 2");
  const std::string sealed = b.image.serialise();
  const auto image = engine::Image::deserialise(std::as_bytes(std::span(sealed)));
  CHECK_THROWS(engine::Session(image, std::make_shared<engine::DeviceMemory>()),
               "needs memory for 3 replicas");
}

TEST(a_thousand_runs_under_random_delays_are_bitwise_equal) {
  Builder b(8);
  b.root({b.sequence({"test.slow_add", "test.sum", "test.slow_add", "test.sum"}),
          b.whileFlag({"test.below_ten"}, {"test.slow_add", "test.sum"})});
  auto session = b.session();
  const std::vector<float> x{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F};
  const auto first = text(run(session, x));
  for (int i = 0; i < 1000; ++i) CHECK_EQ(text(run(session, x)), first);
}

TEST(callbacks_of_all_replicas_meet_on_the_host) {
  constexpr int kReplicas = 16;
  Builder b(kReplicas);
  b.root({b.sequence({"test.slow_add", "test.call", "test.call", "test.sum", "test.call"})});
  auto session = b.session();
  Barrier barrier(kReplicas);
  std::atomic<int> calls{0};
  Host host([&](float x) {
    barrier.wait();
    ++calls;
    return x + 1;
  });
  const auto threads = engine::ReplicaThreads::shared().numThreads();
  for (int i = 0; i < 1000; ++i) run(session, std::vector<float>(kReplicas, 0), &host);
  CHECK_EQ(calls.load(), 1000 * 3 * kReplicas);
  CHECK(engine::ReplicaThreads::shared().numThreads() <= std::max<std::size_t>(threads, 15));
}

TEST(callbacks_of_one_replica_keep_their_order) {
  Builder b(4);
  b.root({b.sequence({"test.call", "test.call", "test.call"})});
  auto session = b.session();
  std::mutex mutex;
  std::vector<float> seen;
  Host host([&](float x) {
    const std::lock_guard lock(mutex);
    seen.push_back(x);
    return x + 1;
  });
  CHECK_EQ(text(run(session, {0, 10, 20, 30}, &host)), text({3, 13, 23, 33}));
  for (const float first : {0.0F, 10.0F, 20.0F, 30.0F}) {
    std::vector<float> own;
    for (const float x : seen)
      if (x >= first && x < first + 10) own.push_back(x);
    CHECK_EQ(text(own), text({first, first + 1, first + 2}));
  }
}

TEST(one_callback_that_fails_is_reported_and_keeps_the_others_from_waiting) {
  Builder b(4);
  b.root({b.sequence({"test.call", "test.call"})});
  auto session = b.session();
  Barrier met(4);
  std::atomic<bool> failed{false};
  Host host([&](float x) {
    if (x >= 100) throw std::logic_error("nobody comes to the second callback");
    met.wait();
    if (x == 2) {
      failed = true;
      throw std::runtime_error("the third has had enough");
    }
    while (!failed) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return x + 100;
  });
  CHECK_THROWS(run(session, {0, 1, 2, 3}, &host), "the third has had enough");
  Host works([](float x) { return x + 1; });
  CHECK_EQ(text(run(session, {0, 0, 0, 0}, &works)), text({2, 2, 2, 2}));
}

TEST(a_failure_is_told_while_others_wait) {
  Builder b(4);
  b.root({b.sequence({"test.call"})});
  auto session = b.session();
  std::atomic<int> waited{0};
  Host* told_to = nullptr;
  Host host([&](float x) {
    if (x == 2) throw std::runtime_error("the third never comes");
    while (!told_to->told) std::this_thread::yield();
    ++waited;
    return x;
  });
  told_to = &host;
  CHECK_THROWS(run(session, {0, 1, 2, 3}, &host), "the third never comes");
  CHECK(waited.load() <= 3);
  CHECK(host.told.load());
}

TEST(a_host_that_takes_one_thread_is_called_in_turn) {
  Builder b(3);
  b.root({b.sequence({"test.call"})});
  auto session = b.session();
  std::vector<std::thread::id> threads;
  Host host(
      [&](float x) {
        threads.push_back(std::this_thread::get_id());
        return x;
      },
      false);
  run(session, {0, 0, 0}, &host);
  CHECK(threads == std::vector<std::thread::id>(3, std::this_thread::get_id()));
}

TEST(programs_in_callbacks_of_programs_have_threads_too) {
  Builder b(3);
  b.root({b.sequence({"test.call"})});
  auto outer = b.session();
  Barrier inner_barrier(3);
  Host inner_host([&](float x) {
    inner_barrier.wait();
    return x + 1;
  });
  std::mutex one_inner_at_a_time;
  auto inner = b.session();
  Host host([&](float x) {
    const std::lock_guard lock(one_inner_at_a_time);
    return run(inner, {x, x, x}, &inner_host)[2];
  });
  CHECK_EQ(text(run(outer, {1, 2, 3}, &host)), text({2, 3, 4}));
}
