#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "work_queue.hpp"

using ipujax::plugin::FailurePtr;
using ipujax::plugin::Task;
using ipujax::plugin::WorkQueue;

namespace {

using namespace std::chrono_literals;

class Function final : public Task {
 public:
  explicit Function(std::function<void()> work, bool overtakes = false)
      : work_(std::move(work)), overtakes_(overtakes) {}
  void run() noexcept override { work_(); }
  void fail(const FailurePtr&) noexcept override {}
  bool mayOvertake() const override { return overtakes_; }

 private:
  std::function<void()> work_;
  bool overtakes_;
};

void push(WorkQueue& queue, std::function<void()> work, bool overtakes = false) {
  CHECK(queue.push(std::make_unique<Function>(std::move(work), overtakes)) == nullptr);
}

/// Threads wait at this gate until it is opened.
class Gate {
 public:
  void open() { opened_.set_value(); }
  void pass() { future_.wait_for(20s); }  // so that a failing test ends, too

 private:
  std::promise<void> opened_;
  std::shared_future<void> future_ = opened_.get_future().share();
};

/// Runs `drain` on a thread of its own, which the destructor waits for.
struct Drain {
  explicit Drain(WorkQueue& queue)
      : done(std::async(std::launch::async, [&queue] { queue.drain(); })) {}
  bool ends() { return done.wait_for(20s) == std::future_status::ready; }
  bool goesOn() { return done.wait_for(30ms) == std::future_status::timeout; }
  std::future<void> done;
};

}  // namespace

TEST(an_empty_queue_is_drained) {
  WorkQueue queue;
  queue.drain();
  CHECK(queue.idle());
}

TEST(drain_waits_for_all_that_was_pushed_before) {
  Gate gate;
  std::atomic<int> done{0};
  WorkQueue queue;
  push(queue, [&] { gate.pass(); });
  for (int i = 0; i < 50; ++i) push(queue, [&] { ++done; });
  Drain drain(queue);
  CHECK(drain.goesOn());
  gate.open();
  CHECK(drain.ends());
  CHECK_EQ(done.load(), 50);
}

TEST(drain_does_not_wait_for_what_is_pushed_meanwhile) {
  Gate first, later;
  WorkQueue queue;
  push(queue, [&] { first.pass(); });
  Drain drain(queue);
  CHECK(drain.goesOn());
  push(queue, [&] { later.pass(); });
  first.open();
  CHECK(drain.ends());
  CHECK(!queue.idle());
  later.open();
}

TEST(drain_ends_though_tasks_go_on_pushing_others) {
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0};
  std::function<void()> again;
  WorkQueue queue;  // destroyed before what its tasks use, here and below
  again = [&] {
    ++runs;
    if (!stop) push(queue, again);
  };
  push(queue, again);
  Drain drain(queue);
  CHECK(drain.ends());
  CHECK(runs.load() >= 1);
  stop = true;
  while (!queue.idle()) std::this_thread::yield();
}

TEST(drain_waits_for_the_task_that_others_overtook) {
  Gate host, pushed;
  std::atomic<int> overtook{0};
  std::atomic<bool> first_is_done{false};
  WorkQueue queue;
  push(queue, [&] {
    const WorkQueue::HostWait wait(queue);
    pushed.open();
    host.pass();
    first_is_done = true;
  });
  pushed.pass();
  for (int i = 0; i < 3; ++i)
    push(
        queue, [&] { ++overtook; }, true);
  Drain drain(queue);
  while (overtook < 3) std::this_thread::yield();
  CHECK(drain.goesOn());  // as many have ended as were pushed before the first of these
  host.open();
  CHECK(drain.ends());
  CHECK(first_is_done.load());
}

TEST(drain_of_the_first_alone_is_not_ended_by_later_ones_that_overtake) {
  Gate host, waits;
  std::atomic<bool> overtook{false};
  WorkQueue queue;
  push(queue, [&] {
    const WorkQueue::HostWait wait(queue);
    waits.open();
    host.pass();
  });
  waits.pass();
  Drain drain(queue);
  CHECK(drain.goesOn());
  push(
      queue, [&] { overtook = true; }, true);
  while (!overtook) std::this_thread::yield();
  CHECK(drain.goesOn());
  host.open();
  CHECK(drain.ends());
}

TEST(a_worker_does_not_wait_for_itself) {
  Gate end;
  WorkQueue queue;
  push(queue, [&] {
    queue.drain();
    end.open();
  });
  end.pass();
  queue.drain();
}

TEST(a_closed_queue_drops_what_waits_and_is_drained) {
  Gate gate, began;
  std::atomic<int> runs{0};
  WorkQueue queue;
  push(queue, [&] {
    began.open();
    gate.pass();
  });
  began.pass();
  for (int i = 0; i < 5; ++i) push(queue, [&] { ++runs; });
  Drain drain(queue);
  std::thread closing([&] { queue.close(); });
  CHECK(drain.goesOn());
  gate.open();
  closing.join();
  CHECK(drain.ends());
  CHECK_EQ(runs.load(), 0);
  CHECK(queue.push(std::make_unique<Function>([] {})) != nullptr);
}
