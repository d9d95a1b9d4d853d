#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "engine/ThreadPool.hpp"

using ipujax::engine::ThreadPool;

namespace {

std::int64_t sumTo(std::int64_t n, std::int64_t grain) {
  std::atomic<std::int64_t> total{0};
  ThreadPool::shared().parallelFor(n, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += i;
    total += sum;
  });
  return total;
}

}  // namespace

TEST(every_index_is_visited_once) {
  for (const std::int64_t n : {0, 1, 2, 7, 1000, 100003}) {
    for (const std::int64_t grain : {1, 3, 1000}) CHECK_EQ(sumTo(n, grain), n * (n - 1) / 2);
  }
}

/// At the end threads wait for one last chunk, so it has to be small.
TEST(chunks_become_smaller_down_to_the_grain) {
  ThreadPool& pool = ThreadPool::shared();
  if (pool.numThreads() < 2) return;
  const std::int64_t n = 100000;
  const std::int64_t grain = 10;
  std::mutex mutex;
  std::map<std::int64_t, std::int64_t> ends;
  pool.parallelFor(n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ends[begin] = end;
  });
  std::int64_t next = 0;
  std::int64_t last = n;
  for (const auto& [begin, end] : ends) {
    CHECK_EQ(begin, next);
    CHECK(end - begin <= last);
    CHECK(end - begin >= grain || end == n);
    last = end - begin;
    next = end;
  }
  CHECK_EQ(next, n);
  CHECK(last <= grain);
}

TEST(nested_loops_run_inline) {
  std::atomic<int> inner{0};
  ThreadPool::shared().parallelFor(64, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      ThreadPool::shared().parallelFor(
          10, 1, [&](std::int64_t b, std::int64_t e) { inner += static_cast<int>(e - b); });
    }
  });
  CHECK_EQ(inner.load(), 640);
}

TEST(many_callers_at_once) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) wrong += sumTo(1000 + i, 10) != (1000 + i) * (999 + i) / 2;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(an_exception_reaches_the_caller_and_the_pool_lives_on) {
  const auto fail = [] {
    ThreadPool::shared().parallelFor(1000, 1, [](std::int64_t begin, std::int64_t) {
      if (begin > 500) throw std::runtime_error("chunk failed");
    });
  };
  CHECK_THROWS(fail(), "chunk failed");
  CHECK_EQ(sumTo(1000, 1), 499500);
}

// ThreadSanitizer refuses threads in a forked child; every other build runs this.
#ifndef __SANITIZE_THREAD__
TEST(a_wrong_number_of_threads_is_told) {
  // A pool reads it once, when a process first needs the pool, so a child makes its own here.
  const pid_t child = fork();
  if (child == 0) {
    setenv("IPUJAX_NUM_THREADS", "many", 1);
    try {
      ThreadPool::shared();
    } catch (const std::invalid_argument& e) {
      _exit(std::string(e.what()).find("'many'") != std::string::npos ? 0 : 1);
    }
    _exit(2);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(a_forked_child_computes_too) {
  CHECK_EQ(sumTo(1000, 1), 499500);
  const pid_t child = fork();
  if (child == 0) _exit(sumTo(100000, 10) == 100000ll * 99999 / 2 ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}
#endif
