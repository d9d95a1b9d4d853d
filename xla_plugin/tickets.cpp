#include "tickets.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace ipujax::plugin {
namespace {

/// The meeting point of the devices of one launch.
class Meeting {
 public:
  Meeting(std::unique_ptr<Launch> launch, std::size_t count)
      : launch_(std::move(launch)), missing_(count) {}

  /// The last device to arrive runs the launch; others wait for its end if `wait` is true. `aside`:
  /// another program on the device waits for the host.
  void arrive(bool wait, bool aside = false) noexcept {
    std::unique_lock lock(mutex_);
    aside_ = aside_ || aside;
    if (--missing_ == 0 && launch_) {
      const auto launch = std::move(launch_);
      lock.unlock();
      aside_ ? launch->runAside() : launch->run();
      end();
    } else if (wait) {
      ended_.wait(lock, [&] { return over_; });
    }
  }

  bool mayOvertake() noexcept {
    const std::lock_guard lock(mutex_);
    return launch_ && launch_->mayOvertake();
  }
  std::chrono::milliseconds patience() noexcept {
    const std::lock_guard lock(mutex_);
    return launch_ ? launch_->patience() : std::chrono::milliseconds{0};
  }

  /// Fails the launch because one device will never arrive.
  void fail(const FailurePtr& failure) noexcept {
    std::unique_lock lock(mutex_);
    const auto launch = std::move(launch_);
    lock.unlock();
    if (!launch) return;
    launch->fail(failure);
    end();
  }

 private:
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    over_ = true;
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::unique_ptr<Launch> launch_;
  std::size_t missing_;
  bool aside_ = false;
  bool over_ = false;
};

class Ticket final : public Task {
 public:
  explicit Ticket(std::shared_ptr<Meeting> meeting) : meeting_(std::move(meeting)) {}
  void run() noexcept override { meeting_->arrive(true); }
  void fail(const FailurePtr& failure) noexcept override { meeting_->fail(failure); }
  bool mayOvertake() const override { return meeting_->mayOvertake(); }
  std::chrono::milliseconds patience() const override { return meeting_->patience(); }
  void runAside() noexcept override { meeting_->arrive(true, true); }
  void arriveOnly() noexcept { meeting_->arrive(false); }

 private:
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<Task>> ticketsFor(std::unique_ptr<Launch> launch, std::size_t count) {
  std::vector<std::unique_ptr<Task>> tickets;
  if (count == 1) {
    tickets.push_back(std::move(launch));
    return tickets;
  }
  const auto meeting = std::make_shared<Meeting>(std::move(launch), count);
  for (std::size_t i = 0; i < count; ++i) tickets.push_back(std::make_unique<Ticket>(meeting));
  return tickets;
}

void runRefused(std::vector<std::unique_ptr<Task>> refused) {
  for (const auto& task : refused) {
    if (auto* ticket = dynamic_cast<Ticket*>(task.get())) {
      ticket->arriveOnly();
    } else {
      task->run();
    }
  }
}

}  // namespace ipujax::plugin
