#pragma once
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ipujax::engine {

/// Calls the workers of MultiVertices for one thread. On the IPU a vertex's workers run side by
/// side, and may wait for what others write to memory. Here one runs after the other, the last one
/// first, until one has not returned for kPatience: the rest then start on threads of their own.
class WorkerTurns {
 public:
  /// `call` runs a worker of the vertex whose turn it is; `enter` comes before it on other threads
  /// than that of run().
  WorkerTurns(std::function<void(unsigned worker)> call, std::function<void()> enter);
  ~WorkerTurns();
  WorkerTurns(const WorkerTurns&) = delete;
  WorkerTurns& operator=(const WorkerTurns&) = delete;

  /// Runs a vertex's workers, if `side_by_side` from the start on threads of their own, and tells
  /// whether some were. Rethrows what a worker threw; those that had not started then do not run.
  bool run(bool side_by_side);

  /// Of the thread that watches, every kPatience.
  void look();

 private:
  int take() { return next_.fetch_sub(1, std::memory_order_acq_rel); }
  void call(unsigned worker) noexcept;
  unsigned runUntaken();
  void startThreads(int keep);
  void failWith(std::exception_ptr failure);

  const std::function<void(unsigned)> call_;
  const std::function<void()> enter_;
  std::fenv_t environment_;  ///< of the thread that made this
  std::atomic<int> next_{-1};
  std::atomic<std::uint64_t> turn_{0};
  std::uint64_t seen_turn_ = 0;
  std::mutex mutex_;  ///< of what is below
  std::vector<std::thread> threads_;
  std::exception_ptr failure_;
};

}  // namespace ipujax::engine
