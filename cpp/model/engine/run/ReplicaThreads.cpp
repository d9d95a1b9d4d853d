#include "engine/run/ReplicaThreads.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ipujax::engine {
namespace {

/// One call of runTogether. Lives on its caller's stack until all tasks have ended.
class Together {
 public:
  Together(const std::function<void(std::uint32_t)>& task, std::uint32_t count)
      : task_(task), unfinished_(count) {}

  void run(std::uint32_t index) noexcept {
    try {
      task_(index);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  /// Called when one task has ended. The last call ends this object's life, so it notifies under
  /// the lock.
  void end() {
    const std::lock_guard lock(mutex_);
    if (--unfinished_ == 0) ended_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return unfinished_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::function<void(std::uint32_t)>& task_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::uint32_t unfinished_;
  std::exception_ptr error_;
};

}  // namespace

struct ReplicaThreads::Impl {
  /// A thread and its next task; it waits while `together` is null.
  struct Worker {
    std::condition_variable wake;
    Together* together = nullptr;
    std::uint32_t index = 0;
  };

  void work(Worker& worker) {
    std::unique_lock lock(mutex);
    for (;;) {
      worker.wake.wait(lock, [&] { return worker.together != nullptr; });
      auto* const together = std::exchange(worker.together, nullptr);
      const auto index = worker.index;
      lock.unlock();
      together->run(index);
      lock.lock();
      idle.push_back(&worker);  // before the caller knows, so that its next run starts no thread
      lock.unlock();
      together->end();
      lock.lock();
    }
  }

  /// Called under the mutex: makes sure of at least `needed` idle threads, or throws.
  void start(std::size_t needed) {
    while (idle.size() < needed) {
      auto worker = std::make_unique<Worker>();
      idle.reserve(workers.size() + 1);
      workers.reserve(workers.size() + 1);
      std::thread([this, &started = *worker] { work(started); }).detach();
      idle.push_back(worker.get());
      workers.push_back(std::move(worker));
    }
  }

  mutable std::mutex mutex;  // guards what follows, and each worker's task
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<Worker*> idle;  // the one that ended last comes first: its caches are warm
  const pid_t owner = getpid();
};

ReplicaThreads::ReplicaThreads() : impl_(std::make_unique<Impl>()) {}

/// Never destroyed, as its threads never end: programs may be in flight when the process ends.
ReplicaThreads& ReplicaThreads::shared() {
  static std::atomic<ReplicaThreads*> threads{new ReplicaThreads};
  auto* current = threads.load(std::memory_order_acquire);
  if (current->impl_->owner == getpid()) return *current;
  // In a forked child. If two of its threads get here, one may leak an object without threads.
  auto* const fresh = new ReplicaThreads;
  return threads.compare_exchange_strong(current, fresh) ? *fresh : *current;
}

std::size_t ReplicaThreads::numThreads() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->workers.size();
}

void ReplicaThreads::runTogether(std::uint32_t count,
                                 const std::function<void(std::uint32_t)>& task) {
  if (count == 0) return;
  Together together(task, count);
  {
    const std::lock_guard lock(impl_->mutex);
    try {
      impl_->start(count - 1);
    } catch (const std::system_error& error) {
      throw std::runtime_error("[replicas] needs a thread for each replica to call the host, " +
                               std::to_string(count) + " in all; got fewer from the system: " +
                               error.what() + ". Use fewer devices or raise the limit.");
    }
    for (std::uint32_t index = 1; index < count; ++index) {
      auto& worker = *impl_->idle.back();
      impl_->idle.pop_back();
      worker.together = &together;
      worker.index = index;
      worker.wake.notify_one();
    }
  }
  together.run(0);
  together.end();
  together.wait();
}

}  // namespace ipujax::engine
