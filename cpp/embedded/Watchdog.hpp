#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ipujax::embedded {

using Clock = std::chrono::steady_clock;
/// Never.
constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

/// 0 means never, and so do times over a year, which could overflow the clock.
inline Clock::time_point deadlineAfter(std::chrono::microseconds timeout) {
  constexpr std::chrono::microseconds kYear = std::chrono::hours(24 * 365);
  return timeout.count() <= 0 || timeout > kYear ? kNoDeadline : Clock::now() + timeout;
}

/// Calls a function, on a thread of its own, when the task in progress passes its deadline, once
/// per task. There is one task at a time; the thread starts with the first deadline.
class Watchdog {
 public:
  explicit Watchdog(std::function<void()> expire) : expire_(std::move(expire)) {}
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void begin(Clock::time_point deadline);
  /// Returns whether the function was called for the task; it is not called afterwards.
  bool end();

 private:
  void watch();

  const std::function<void()> expire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point deadline_ = kNoDeadline;  // of the task in progress
  Clock::time_point wakes_ = kNoDeadline;     // when the thread checks next
  bool expired_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ipujax::embedded
