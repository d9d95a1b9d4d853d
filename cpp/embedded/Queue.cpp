#include "embedded/Queue.hpp"

#include <exception>
#include <utility>

#include "embedded/Completion.hpp"
#include "embedded/Error.hpp"

namespace ipujax::embedded {

class Queue::Task final : public Completion {
 public:
  explicit Task(std::function<void()> work) : work_(std::move(work)) {}

  void run() noexcept {
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::make_exception_ptr(currentError());
    }
    finish(std::move(error));
  }

 private:
  const std::function<void()> work_;
};

std::shared_ptr<Run> Queue::push(std::function<void()> task, Clock::time_point deadline) {
  auto run = std::make_shared<Task>(std::move(task));
  {
    std::unique_lock lock(mutex_);
    const auto has_place = [this] { return is_closed_ || waiting_.size() < depth_; };
    if (deadline == kNoDeadline) {
      places_.wait(lock, has_place);
    } else if (!places_.wait_until(lock, deadline, has_place)) {
      throw Error(Status::kTimeout, "[runtime] needs a place among " + std::to_string(depth_) +
                                        " waiting runs; got none in time. Submit fewer at a time.");
    }
    if (is_closed_) return nullptr;
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    waiting_.push_back(run);
  }
  changed_.notify_one();
  return run;
}

void Queue::close() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
  }
  changed_.notify_all();
  places_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Queue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    places_.notify_one();
    task->run();
    lock.lock();
  }
}

}  // namespace ipujax::embedded
