#include "embedded/Completion.hpp"

#include <string>
#include <utility>

#include "embedded/Error.hpp"

namespace ipujax::embedded {

bool Completion::isDone() const {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

bool Completion::waitUntil(Clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return is_done_; };
  if (deadline != kNoDeadline) return done_.wait_until(lock, deadline, is_done);
  done_.wait(lock, is_done);
  return true;
}

void Completion::wait(Timeout timeout) {
  if (!waitUntil(deadlineAfter(timeout)))
    throw Error(Status::kTimeout, "[runtime] needs a run that ends within " +
                                      std::to_string(timeout.count()) +
                                      " us; got one that goes on. Wait again, or longer.");
  if (error_) std::rethrow_exception(error_);
}

void Completion::finish(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  is_done_ = true;
  done_.notify_all();
}

}  // namespace ipujax::embedded
