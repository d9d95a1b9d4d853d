#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::begin(Clock::time_point deadline) {
  const std::lock_guard lock(mutex_);
  expired_ = false;
  deadline_ = deadline;
  if (deadline == kNoDeadline) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  // Deadlines mostly come in order: the thread then wakes for an older one and finds this one.
  if (deadline < wakes_) changed_.notify_one();
}

bool Watchdog::end() {
  const std::lock_guard lock(mutex_);
  deadline_ = kNoDeadline;
  return expired_;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (deadline_ <= Clock::now()) {
      deadline_ = kNoDeadline;
      expired_ = true;
      expire_();
    }
    wakes_ = deadline_;
    if (wakes_ == kNoDeadline) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, wakes_);
    }
  }
}

}  // namespace ipujax::embedded
