#pragma once
#include <condition_variable>
#include <exception>
#include <mutex>

#include "embedded/Session.hpp"
#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

/// A run that another thread ends. Thread-safe.
class Completion : public Run {
 public:
  bool isDone() const override;
  void wait(Timeout timeout) override;
  /// Returns whether the run is done by then.
  bool waitUntil(Clock::time_point deadline) const;
  /// Call this once; null means success.
  void finish(std::exception_ptr error) noexcept;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  bool is_done_ = false;
  std::exception_ptr error_;
};

}  // namespace ipujax::embedded
