#include <atomic>
#include <thread>

#include "Check.hpp"
#include "SavedProgram.hpp"
#include "embedded/AlignedBytes.hpp"
#include "embedded/Batcher.hpp"
#include "embedded/Error.hpp"
#include "embedded/Session.hpp"
#include "poplar/Program.hpp"
#include "runtime/Backend.hpp"

using namespace check;
using namespace std::chrono_literals;
using embedded::Arrays;
using embedded::Batcher;
using embedded::Session;
using embedded::Status;

namespace {

constexpr std::size_t kSize = 100;

std::unique_ptr<Session> opened(const Saved& saved, const Session::Options& options = {}) {
  const Folder folder;  // a session needs its file no longer
  saved.write(folder / "a");
  return Session::open(folder / "a", options);
}

Status statusOf(const std::function<void()>& call) {
  try {
    call();
    return Status::kOk;
  } catch (const embedded::Error& error) {
    return error.status();
  }
}

/// x + x + x ...: takes long if `iterations` is large.
Saved longProgram(unsigned iterations) {
  FloatProgram p;
  const auto x = p.input({kSize});
  const auto y = popops::add(p.graph, x, x, p.prog, "twice");
  poplar::program::Sequence body;
  popops::addInPlace(p.graph, y, x, body);
  p.prog.add(poplar::program::Repeat(iterations, body));
  p.output(y);
  p.options.signature.name = "long";
  p.options.signature.output_alias = {-1};
  Saved saved;
  saved.description = {
      "long", "{}", {leaf("x", kSize, 0, false)}, {leaf("result", kSize, 0, false)}, {}, {}, {}};
  saved.program = p.build()->serialise();
  return saved;
}

struct Sum {
  std::vector<float> x = numbers(kSize, 2);
  std::vector<float> y = std::vector<float>(kSize);
  Arrays arrays{{nullptr, x.data()}, {y.data()}};
};

void checkSum(const std::vector<float>& y, const std::vector<float>& w, const std::vector<float>& x,
              float times = 1) {
  for (std::size_t i = 0; i < y.size(); ++i) CHECK_NEAR(y[i], w[i] + times * x[i], 1e-5);
}

}  // namespace

TEST(a_session_describes_what_it_takes_and_gives) {
  const auto session = opened(sumProgram(kSize, false));
  CHECK_EQ(session->inputs().size(), 2u);
  CHECK_EQ(session->inputs()[0].name, "unused");
  CHECK_EQ(session->inputs()[0].bytes, 0u);
  CHECK_EQ(session->inputs()[1].bytes, kSize * sizeof(float));
  CHECK_EQ(session->stored()[0].name, "w");
  CHECK_EQ(session->outputs()[0].shape[0], static_cast<std::int64_t>(kSize));
}

TEST(a_run_takes_arrays_wherever_they_begin) {
  const Saved saved = sumProgram(kSize, false);
  const auto session = opened(saved);
  std::vector<char> memory(2 * kSize * sizeof(float) + 256);
  const auto x = numbers(kSize, 2);
  for (std::size_t offset = 0; offset < 64; offset += 7) {
    char* const from = memory.data() + offset;
    char* const to = from + kSize * sizeof(float) + 1;
    std::memcpy(from, x.data(), kSize * sizeof(float));
    session->run({{nullptr, from}, {to}});
    std::vector<float> y(kSize);
    std::memcpy(y.data(), to, kSize * sizeof(float));
    checkSum(y, saved.stored[0], x);
  }
}

TEST(wrong_arrays_are_refused) {
  const auto session = opened(sumProgram(kSize, false));
  Sum sum;
  CHECK_THROWS(session->run({{sum.x.data()}, {sum.y.data()}}), "needs 2 inputs; got 1");
  CHECK_THROWS(session->run({{nullptr, sum.x.data()}, {}}), "needs 1 outputs; got 0");
  CHECK_THROWS(session->run({{nullptr, nullptr}, {sum.y.data()}}), "needs an array for x");
  session->run({{nullptr, sum.x.data()}, {nullptr}});  // a result that is not wanted
}

TEST(state_changes_with_each_run_that_ends_well) {
  const Saved saved = sumProgram(kSize, true);
  const auto session = opened(saved);
  Sum sum;
  for (int i = 1; i <= 3; ++i) {
    session->run(sum.arrays);
    checkSum(sum.y, saved.stored[0], sum.x, static_cast<float>(i));
  }
  ipujax::runtime::injectFault("ecc", 1, "");
  CHECK_EQ(static_cast<int>(statusOf([&] { session->run(sum.arrays); })),
           static_cast<int>(Status::kRecoverable));
  ipujax::runtime::resetDevices(ipujax::runtime::Recovery::kIpuReset);
  std::vector<float> state(kSize);
  session->readStored("w", std::as_writable_bytes(std::span(state)));
  checkSum(state, saved.stored[0], sum.x, 3);
  session->run(sum.arrays);
  checkSum(sum.y, saved.stored[0], sum.x, 4);
}

TEST(stored_arrays_are_swapped_all_or_none) {
  const auto session = opened(sumProgram(kSize, false));
  Sum sum;
  const auto other = numbers(kSize, 9);
  const Session::NewValue good{"w", bytesOf(other)};
  const Session::NewValue of_other_size{"w", bytesOf(std::vector<float>(3))};
  const Session::NewValue unknown{"x", bytesOf(other)};
  CHECK_THROWS(session->setStored(std::vector{good, of_other_size}), "needs 400 bytes for w");
  CHECK_THROWS(session->setStored(std::vector{unknown}), "the name of a stored argument (w)");
  session->run(sum.arrays);
  checkSum(sum.y, numbers(kSize, 1), sum.x);
  session->setStored(std::vector{good});
  session->run(sum.arrays);
  checkSum(sum.y, other, sum.x);
}

TEST(many_threads_run_and_swap) {
  const auto session = opened(sumProgram(kSize, false));
  const std::vector<float> ones(kSize, 1);
  const std::vector<float> twos(kSize, 2);
  session->setStored(std::vector{Session::NewValue{"w", bytesOf(ones)}});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Sum sum;
      for (int i = 0; i < 200; ++i) {
        if (t == 0) {
          const auto& values = i % 2 ? ones : twos;
          session->setStored(std::vector{Session::NewValue{"w", bytesOf(values)}});
        }
        if (t == 1) {
          session->submit(sum.arrays)->wait();
        } else {
          session->run(sum.arrays);
        }
        const float w = std::round(sum.y[0] - sum.x[0]);  // all elements must be from one array
        for (std::size_t k = 0; k < kSize; ++k)
          if (std::abs(sum.y[k] - sum.x[k] - w) > 1e-5 || (w != 1 && w != 2)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(submitted_runs_come_in_order) {
  const Saved saved = sumProgram(kSize, true);
  const auto session = opened(saved, {.timeout = 0us, .queue_depth = 2});
  std::vector<Sum> sums(20);
  std::vector<std::shared_ptr<embedded::Run>> runs;
  for (auto& sum : sums) runs.push_back(session->submit(sum.arrays));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i]->wait(10s);
    CHECK_EQ(runs[i]->isDone(), true);
    checkSum(sums[i].y, saved.stored[0], sums[i].x, static_cast<float>(i + 1));
  }
}

TEST(a_run_that_takes_too_long_is_cancelled_and_later_ones_work) {
  const auto session = opened(longProgram(2'000'000'000));
  const std::vector<float> x(kSize);
  std::vector<float> y(kSize);
  const Arrays arrays{{x.data()}, {y.data()}};
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)
    CHECK_EQ(static_cast<int>(statusOf([&] { session->run(arrays, 20ms); })),
             static_cast<int>(Status::kTimeout));
  CHECK_EQ(std::chrono::steady_clock::now() - begin < 20s, true);
  const auto quick = opened(longProgram(10), {.timeout = 10s});
  for (int i = 0; i < 50; ++i) quick->run(arrays);
  CHECK_THROWS(session->run(arrays, -1us), "needs a time-out above 0");
}

TEST(time_outs_hold_while_others_run) {
  const auto session = opened(longProgram(2'000'000'000));
  const std::vector<float> x(kSize);
  std::vector<float> y(kSize), z(kSize);
  const auto run = session->submit({{x.data()}, {y.data()}}, 2s);
  CHECK_EQ(static_cast<int>(statusOf([&] { run->wait(5ms); })), static_cast<int>(Status::kTimeout));
  CHECK_EQ(static_cast<int>(statusOf([&] {
             session->run({{x.data()}, {z.data()}}, 20ms);
           })),
           static_cast<int>(Status::kTimeout));
  session->close();
  CHECK_EQ(static_cast<int>(statusOf([&] { run->wait(); })), static_cast<int>(Status::kClosed));
}

TEST(closing_ends_what_runs_and_what_waits) {
  const auto session = opened(longProgram(2'000'000'000));
  const std::vector<float> x(kSize);
  std::vector<std::vector<float>> results(6, std::vector<float>(kSize));
  std::atomic<int> closed{0};
  std::vector<std::shared_ptr<embedded::Run>> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(session->submit({{x.data()}, {results[i].data()}}));
  std::vector<std::thread> threads;
  for (int i = 3; i < 6; ++i)
    threads.emplace_back([&, i] {
      closed += statusOf([&] {
                  session->run({{x.data()}, {results[i].data()}});
                }) == Status::kClosed;
    });
  std::this_thread::sleep_for(20ms);
  session->close();
  for (auto& thread : threads) thread.join();
  for (const auto& run : runs) closed += statusOf([&] { run->wait(); }) == Status::kClosed;
  CHECK_EQ(closed.load(), 6);
  CHECK_EQ(static_cast<int>(statusOf([&] {
             session->run({{x.data()}, {results[0].data()}});
           })),
           static_cast<int>(Status::kClosed));
  CHECK_EQ(static_cast<int>(statusOf([&] {
             session->submit({{x.data()}, {results[0].data()}});
           })),
           static_cast<int>(Status::kClosed));
  session->close();
}

TEST(requests_of_few_samples_share_batches) {
  const Saved saved = sumProgram(kSize, false);
  const auto session = opened(saved);
  Batcher batcher(*session, 2ms);
  CHECK_EQ(batcher.batchSize(), kSize);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  session->setStored(std::vector{Session::NewValue{"w", bytesOf(std::vector<float>(kSize, 3))}});
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t samples = 1; samples < 40; ++samples) {
        const auto x = numbers(samples, static_cast<unsigned>(t));
        std::vector<float> y(samples);
        batcher.run({{nullptr, x.data()}, {y.data()}}, samples, 10s);
        for (std::size_t i = 0; i < samples; ++i) wrong += std::abs(y[i] - x[i] - 3) > 1e-5;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  const std::vector<float> x(kSize + 1);
  std::vector<float> y(kSize + 1);
  CHECK_THROWS(batcher.run({{nullptr, x.data()}, {y.data()}}, kSize + 1), "from 1 to 100 samples");
  batcher.close();
  CHECK_EQ(static_cast<int>(statusOf([&] {
             batcher.run({{nullptr, x.data()}, {y.data()}}, 1);
           })),
           static_cast<int>(Status::kClosed));
}

TEST(one_thread_submits_requests_that_share_batches) {
  const Saved saved = sumProgram(kSize, false);
  const auto session = opened(saved, {embedded::Timeout{0}, 2});
  Batcher batcher(*session, 5ms);
  session->setStored(std::vector{Session::NewValue{"w", bytesOf(std::vector<float>(kSize, 3))}});
  const auto x = numbers(kSize, 7);
  std::vector<std::vector<float>> results(30, std::vector<float>(kSize));
  std::vector<std::shared_ptr<embedded::Run>> runs;
  for (std::size_t i = 0; i < results.size(); ++i)  // more than may wait: some wait for a place
    runs.push_back(batcher.submit({{nullptr, x.data()}, {results[i].data()}}, i + 1, 10s));
  for (std::size_t i = 0; i < results.size(); ++i) {
    runs[i]->wait();
    CHECK(runs[i]->isDone());
    for (std::size_t k = 0; k < kSize; ++k)
      CHECK(std::abs(results[i][k] - (k <= i ? x[k] + 3 : 0)) < 1e-5);
  }
  const auto late = batcher.submit({{nullptr, x.data()}, {results[0].data()}}, 1, 1us);
  CHECK_EQ(static_cast<int>(statusOf([&] { late->wait(); })), static_cast<int>(Status::kTimeout));
  Batcher slow(*session, 1h);
  CHECK_EQ(static_cast<int>(statusOf([&] {
             slow.run({{nullptr, x.data()}, {results[0].data()}}, 1, 1ms);
           })),
           static_cast<int>(Status::kTimeout));
  const auto left = slow.submit({{nullptr, x.data()}, {results[0].data()}}, 1);
  CHECK(!left->isDone());
  slow.close();
  CHECK_EQ(static_cast<int>(statusOf([&] { left->wait(); })), static_cast<int>(Status::kClosed));
}

TEST(programs_that_need_their_process_are_refused) {
  FloatProgram p;
  p.output(p.input({3}));
  p.options.signature.output_alias = {-1};
  p.options.signature.has_host_callbacks = true;
  Saved saved;
  saved.description = {"f", "{}", {leaf("x", 3, 0, false)}, {leaf("result", 3, 0, false)}, {},
                       {},  {}};
  saved.program = p.build()->serialise();
  CHECK_EQ(static_cast<int>(statusOf([&] { opened(saved); })),
           static_cast<int>(Status::kNotSupported));
}
