#include "poplar/StreamCallback.hpp"

namespace poplar {

void ResumableStreamCallback::wait() {
  std::unique_lock lock(mutex_);
  waits_ = true;
  notified_.wait(lock, [&] { return is_notified_; });
  waits_ = is_notified_ = false;
}

void ResumableStreamCallback::notify() {
  const std::scoped_lock lock(mutex_);
  is_notified_ = true;
  notified_.notify_one();
}

bool ResumableStreamCallback::isAwaiting() const {
  const std::scoped_lock lock(mutex_);
  return waits_;
}

}  // namespace poplar
