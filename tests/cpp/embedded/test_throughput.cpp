#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <latch>
#include <thread>

#include "Check.hpp"
#include "SavedProgram.hpp"
#include "embedded/AlignedBytes.hpp"
#include "embedded/Session.hpp"
#include "poplin/MatMul.hpp"
#include "popops/ElementWise.hpp"
#include "runtime/Backend.hpp"

using namespace check;
using embedded::Session;

namespace {

constexpr std::size_t kBatch = 32;
constexpr std::size_t kWidth = 128;
constexpr int kRuns = 1600;

/// A classifier with two layers, whose weights are stored.
Saved classifier() {
  FloatProgram p;
  const auto w1 = p.input({kWidth, kWidth});
  const auto w2 = p.input({kWidth, kWidth});
  const auto x = p.input({kBatch, kWidth});
  const auto h = popops::tanh(p.graph, poplin::matMul(p.graph, x, w1, p.prog), p.prog);
  p.output(poplin::matMul(p.graph, h, w2, p.prog));
  p.options.signature.name = "classifier";
  p.options.signature.output_alias = {-1};
  const auto array = [](const std::string& name, std::size_t rows, int slot, bool stored) {
    return embedded::Leaf{name, "float32", {static_cast<std::int64_t>(rows), kWidth}, slot, stored};
  };
  Saved saved;
  saved.description = {
      "classifier",
      "{}",
      {array("w1", kWidth, 0, true), array("w2", kWidth, 1, true), array("x", kBatch, 2, false)},
      {array("result", kBatch, 0, false)},
      {},
      {},
      {}};
  saved.program = p.build()->serialise();
  saved.stored = {numbers(kWidth * kWidth, 1), numbers(kWidth * kWidth, 2)};
  return saved;
}

struct Arrays {
  embedded::AlignedBytes x{kBatch * kWidth * sizeof(float)};
  embedded::AlignedBytes y{kBatch * kWidth * sizeof(float)};
  Arrays() { std::memset(x.data(), 0, x.size()); }
};

/// Wall-clock time, and processor time of all threads, which shows the cost of waiting even on a
/// shared machine.
struct Seconds {
  double passed = 0, of_processors = 0;
};

template <class F>
Seconds seconds(const F& work) {
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t begin_of_processors = std::clock();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          static_cast<double>(std::clock() - begin_of_processors) / CLOCKS_PER_SEC};
}

/// Measures `count` threads from the moment that all have started.
template <class F>
Seconds secondsOfThreads(std::size_t count, const F& work) {
  std::latch start(static_cast<std::ptrdiff_t>(count + 1));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      work(t);
    });
  return seconds([&] {
    start.arrive_and_wait();
    for (auto& thread : threads) thread.join();
  });
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

/// Tests share their machine, so `make bench` applies the bound to what this prints.
TEST(many_threads_get_the_results_of_the_engine) {
  const Folder folder;
  const Saved saved = classifier();
  saved.write(folder / "a");
  Session session(embedded::Package::read(folder / "a"));
  const auto program = ipujax::runtime::openProgram(bytesOf(saved.program));
  const auto alone = program->open({ipujax::runtime::makeDeviceState({})}, nullptr);
  const auto& stored = session.package();
  const Arrays own;
  const void* in[] = {stored.stored(0).data(), stored.stored(1).data(), own.x.data()};
  void* out[] = {own.y.data()};
  const ipujax::runtime::Arrays arrays{in, out};
  const auto engine = [&] {
    for (int i = 0; i < kRuns; ++i) alone->run({&arrays, 1}, nullptr, {});
  };
  std::vector<Arrays> of_thread(8);
  engine();
  for (const std::size_t count : {1, 2, 8}) {
    std::vector<double> ratios, of_processors;
    for (int i = 0; i < 9; ++i) {
      const Seconds of_engine = seconds(engine);
      const Seconds together = secondsOfThreads(count, [&](std::size_t t) {
        const embedded::Arrays a{{of_thread[t].x.data()}, {of_thread[t].y.data()}};
        for (std::size_t run = 0; run < kRuns / count; ++run) session.run(a);
      });
      ratios.push_back(together.passed / of_engine.passed);
      of_processors.push_back(together.of_processors / of_engine.of_processors);
    }
    std::printf("measured: session of %zu threads over the engine: %.3f (%.3f by processor time)\n",
                count, median(ratios), median(of_processors));
    for (std::size_t t = 0; t < count; ++t)
      CHECK_EQ(std::memcmp(of_thread[t].y.data(), own.y.data(), own.y.size()), 0);
  }
}
