#include "engine/ThreadPool.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/Workspace.hpp"

namespace ipujax::engine {
namespace {

constexpr int kMostThreads = 1024;
constexpr std::chrono::seconds kIdle{1};  ///< after this, a worker frees its memory

thread_local bool inside_parallel = false;

int availableCpus() {
  if (const char* text = std::getenv("IPUJAX_NUM_THREADS")) {
    int n = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), n);
    if (error != std::errc() || *end != '\0' || n < 1 || n > kMostThreads) {
      throw std::invalid_argument("[IPUJAX_NUM_THREADS] needs a whole number from 1 to " +
                                  std::to_string(kMostThreads) + "; got '" + text +
                                  "'. Correct or unset the environment variable.");
    }
    return n;
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// One parallelFor. Chunks become smaller towards the end, so that all threads end at about the
/// same time; the bounds of a chunk do not depend on the thread that runs it.
struct Job {
  RangeFn fn;
  std::int64_t n;
  std::int64_t grain;
  std::int64_t share;  ///< a chunk is 1 / share of the remaining work
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error{};
  std::mutex error_mutex{};

  std::int64_t endOf(std::int64_t begin) const {
    const std::int64_t left = n - begin;
    return begin + std::min(left, std::max(grain, (left + share - 1) / share));
  }

  void work() {
    inside_parallel = true;
    std::int64_t begin = next.load(std::memory_order_relaxed);
    while (begin < n) {
      const std::int64_t end = endOf(begin);
      if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      try {
        fn(begin, end);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
      begin = next.load(std::memory_order_relaxed);
    }
    inside_parallel = false;
  }
};

}  // namespace

struct ThreadPool::Impl {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<std::uint64_t> generation{0};
  Job* job = nullptr;  // guarded by mutex; non-null while helpers may join
  std::atomic<int> busy_helpers{0};
  bool stop = false;  // guarded by mutex
  std::mutex caller;  // held by the parallelFor that owns the workers
  pid_t owner = getpid();

  void workerLoop() {
    std::uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < 2000 && generation.load(std::memory_order_acquire) == seen; ++spin)
        pause();
      Job* mine = nullptr;
      {
        std::unique_lock lock(mutex);
        const auto wanted = [&] { return stop || generation.load() != seen; };
        if (!wake.wait_until(lock, std::chrono::system_clock::now() + kIdle, wanted)) {
          Workspace::release();
          wake.wait(lock, wanted);
        }
        if (stop) return;
        seen = generation.load();
        mine = job;
        if (mine) busy_helpers.fetch_add(1);
      }
      if (!mine) continue;
      mine->work();
      busy_helpers.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool() : impl_(std::make_unique<Impl>()) {
  for (int i = 1; i < availableCpus(); ++i)
    impl_->threads.emplace_back([impl = impl_.get()] { impl->workerLoop(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  for (auto& thread : impl_->threads) thread.join();
}

ThreadPool& ThreadPool::shared() {
  // Never destroyed: worker threads may still be needed by programs in flight at exit.
  static std::atomic<ThreadPool*> pool{new ThreadPool};
  ThreadPool* current = pool.load(std::memory_order_acquire);
  if (current->impl_->owner != getpid()) {
    // A forked child has no workers; it makes its own and leaves the parent's object alone.
    auto* fresh = new ThreadPool;
    if (pool.compare_exchange_strong(current, fresh)) return *fresh;
    delete fresh;
    return *pool.load();
  }
  return *current;
}

int ThreadPool::numThreads() const { return static_cast<int>(impl_->threads.size()) + 1; }

void ThreadPool::parallelFor(std::int64_t n, std::int64_t grain, RangeFn fn) {
  if (n <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  std::unique_lock owner(impl_->caller, std::defer_lock);
  if (n <= grain || impl_->threads.empty() || inside_parallel || !owner.try_lock()) {
    fn(0, n);
    return;
  }
  Job job{fn, n, grain, 2 * numThreads()};
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->job = &job;
    impl_->generation.fetch_add(1, std::memory_order_release);
  }
  impl_->wake.notify_all();
  job.work();
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->job = nullptr;
  }
  for (int spin = 0; impl_->busy_helpers.load(std::memory_order_acquire) != 0; ++spin) {
    spin < 10000 ? pause() : std::this_thread::yield();
  }
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace ipujax::engine
