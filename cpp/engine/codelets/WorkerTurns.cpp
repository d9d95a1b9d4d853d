#include "engine/codelets/WorkerTurns.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <system_error>
#include <utility>

#include "engine/codelets/VertexAbi.hpp"

namespace ipujax::engine {
namespace {

constexpr std::chrono::milliseconds kPatience{20};

/// The thread that looks after all turns of the process. Nothing ends it: it may wait while static
/// objects are destroyed.
class Watch {
 public:
  static Watch& shared() {
    static std::once_flag once;
    std::call_once(once, [] {
      current = new Watch();
      pthread_atfork(nullptr, nullptr, [] { current = new Watch(); });  // has no thread yet
    });
    return *current;
  }

  void add(WorkerTurns* turns) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(turns);
    if (std::exchange(started_, true)) {
      if (idle_) wake_.notify_one();
    } else {
      std::thread([this] { watch(); }).detach();
    }
  }

  void remove(WorkerTurns* turns) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.erase(std::find(all_.begin(), all_.end(), turns));
  }

 private:
  [[noreturn]] void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      idle_ = true;
      wake_.wait(lock, [&] { return !all_.empty(); });
      idle_ = false;
      while (!all_.empty()) {
        lock.unlock();
        std::this_thread::sleep_for(kPatience);
        lock.lock();
        for (WorkerTurns* turns : all_) turns->look();
      }
    }
  }

  static inline Watch* current = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<WorkerTurns*> all_;
  bool started_ = false;
  bool idle_ = false;
};

}  // namespace

WorkerTurns::WorkerTurns(std::function<void(unsigned)> call, std::function<void()> enter)
    : call_(std::move(call)), enter_(std::move(enter)) {
  std::fegetenv(&environment_);
  Watch::shared().add(this);
}

WorkerTurns::~WorkerTurns() { Watch::shared().remove(this); }

bool WorkerTurns::run(bool side_by_side) {
  static std::mutex one_vertex;  // those that wait for one another leave no processor to others
  std::unique_lock<std::mutex> lock(one_vertex, std::defer_lock);
  if (side_by_side) lock.lock();
  turn_.store(turn_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  next_.store(static_cast<int>(kIpujaxWorkers) - 1, std::memory_order_release);
  if (side_by_side) startThreads(1);
  if (runUntaken() == kIpujaxWorkers && !failure_) return false;
  std::vector<std::thread> threads;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return true;
}

void WorkerTurns::look() {
  const std::uint64_t turn = turn_.load(std::memory_order_relaxed);
  if (turn == seen_turn_) startThreads(0);
  seen_turn_ = turn;
}

/// All that are not taken but the last `keep` of them.
void WorkerTurns::startThreads(int keep) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (next_.load(std::memory_order_relaxed) >= keep) {
    const int worker = take();
    if (worker < 0) break;
    try {
      threads_.emplace_back([this, worker] {
        std::fesetenv(&environment_);
        enter_();
        call(static_cast<unsigned>(worker));
      });
    } catch (const std::system_error&) {
      failWith(std::current_exception());  // no thread is left: run() rethrows it
    }
  }
}

unsigned WorkerTurns::runUntaken() {
  unsigned run = 0;
  for (int worker; (worker = take()) >= 0; ++run) call(static_cast<unsigned>(worker));
  return run;
}

void WorkerTurns::call(unsigned worker) noexcept {
  try {
    call_(worker);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failWith(std::current_exception());
  }
}

void WorkerTurns::failWith(std::exception_ptr failure) {
  if (!failure_) failure_ = std::move(failure);
  next_.store(-1, std::memory_order_relaxed);
}

}  // namespace ipujax::engine
