#pragma once
#include <chrono>
#include <cstddef>
#include <memory>

#include "failure.hpp"

namespace ipujax::plugin {

/// Something to run later, exactly once: either `run` or `fail` is called, then it is destroyed.
class Task {
 public:
  virtual ~Task() = default;
  virtual void run() noexcept = 0;
  virtual void fail(const FailurePtr& failure) noexcept = 0;
  /// Whether it may run while the task before it waits for the host, and after how long a wait.
  virtual bool mayOvertake() const { return false; }
  virtual std::chrono::milliseconds patience() const { return std::chrono::milliseconds{0}; }
  /// Called instead of `run` on a thread other than the queue's.
  virtual void runAside() noexcept { run(); }
};

/// Tasks in order, on a thread of their own that starts with the first task. In a forked child,
/// where that thread does not exist, and after `close`, the caller of `push` has to run the task.
/// While a task waits for the host, later tasks may overtake it on a second thread: the host may
/// itself wait for them.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  ///< closes

  /// Null when the task was queued; else the task, for the caller to run once it holds no lock.
  [[nodiscard]] std::unique_ptr<Task> push(std::unique_ptr<Task> task);
  bool idle() const;  ///< nothing waits or runs
  void drain();       ///< until everything pushed so far has run; never with the GIL held
  /// Blocks while more than `count` tasks wait, so that a fast caller cannot flood memory.
  void waitUntilAtMost(std::size_t count);
  /// Fails what waits, waits for what runs, ends the thread. Workers do not wait for each other.
  void close();

  /// Whether this is a queue's thread or one on which a queue's program calls the host.
  static bool onWorkerThread();
  struct State;
  /// Counts this thread as a worker while a host callback runs on it.
  class HostCall {
   public:
    HostCall();
    ~HostCall();
    HostCall(const HostCall&) = delete;
    HostCall& operator=(const HostCall&) = delete;

   private:
    const bool was_worker_;
  };
  /// How long the running task has waited for the host since the last callback began or ended. Zero
  /// if it does not wait for the host.
  std::chrono::nanoseconds heldByHost() const;
  /// Marks the running task as waiting for the host while this object lives.
  class HostWait {
   public:
    explicit HostWait(WorkQueue& queue);
    ~HostWait();
    HostWait(const HostWait&) = delete;
    HostWait& operator=(const HostWait&) = delete;

   private:
    const std::shared_ptr<State> state_;
  };

 private:
  static void work(const std::shared_ptr<State>& state);
  static void overtake(const std::shared_ptr<State>& state);
  static void ensureSecondThread(const std::shared_ptr<State>& state);
  void ensureThread();

  std::shared_ptr<State> state_;
};

}  // namespace ipujax::plugin
