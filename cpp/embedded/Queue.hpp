#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "embedded/Session.hpp"
#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

/// Runs tasks one after another on a thread of its own, which starts with the first task.
class Queue {
 public:
  explicit Queue(std::size_t depth) : depth_(depth) {}
  ~Queue() { close(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Waits for a place; throws kTimeout if none becomes free in time. Returns null once closed.
  std::shared_ptr<Run> push(std::function<void()> task, Clock::time_point deadline);
  /// Waiting tasks still run but find their session closed. Returns when all have ended.
  void close();

 private:
  class Task;
  void work();

  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;  // the thread waits for tasks
  std::condition_variable places_;   // callers wait for a place
  std::deque<std::shared_ptr<Task>> waiting_;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace ipujax::embedded
