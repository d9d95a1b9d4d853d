#include "work_queue.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/Backend.hpp"

namespace ipujax::plugin {
namespace {
thread_local bool on_worker_thread = false;
constexpr std::chrono::seconds kIdle{1};  ///< then the thread frees its memory
/// Interval between checks whether the first task may overtake.
constexpr std::chrono::milliseconds kLook{10};
}  // namespace

/// Shared by the queue and its thread, which may outlive the queue if it had to be detached.
struct WorkQueue::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Task>> waiting;
  std::atomic<std::size_t> unfinished{0};  // waiting and running; changes under the mutex
  std::size_t pushed = 0;
  bool closed = false;
  pid_t process = 0;  // where the thread lives; 0 before it starts
  std::thread thread;

  // How many waits for the host the running task has, since when, and whether a task overtakes it.
  std::condition_variable host_wait_changed;
  std::size_t host_waits = 0;
  std::chrono::steady_clock::time_point waits_since;
  std::chrono::steady_clock::time_point host_wait_began_or_ended;
  bool overtaking = false;
  bool running = false;   // a task, on the first thread
  std::size_t ahead = 0;  // tasks that overtook it and have finished
  std::thread second_thread;
};

WorkQueue::WorkQueue() : state_(std::make_shared<State>()) {}

WorkQueue::~WorkQueue() { close(); }

bool WorkQueue::onWorkerThread() { return on_worker_thread; }

WorkQueue::HostCall::HostCall() : was_worker_(std::exchange(on_worker_thread, true)) {}
WorkQueue::HostCall::~HostCall() { on_worker_thread = was_worker_; }

WorkQueue::HostWait::HostWait(WorkQueue& queue) : state_(queue.state_) {
  const std::lock_guard lock(state_->mutex);
  state_->host_wait_began_or_ended = std::chrono::steady_clock::now();
  if (state_->host_waits++ > 0) return;
  state_->waits_since = state_->host_wait_began_or_ended;
  if (!state_->waiting.empty()) ensureSecondThread(state_);
}

WorkQueue::HostWait::~HostWait() {
  const std::lock_guard lock(state_->mutex);
  state_->host_wait_began_or_ended = std::chrono::steady_clock::now();
  if (--state_->host_waits == 0) state_->host_wait_changed.notify_all();
}

std::chrono::nanoseconds WorkQueue::heldByHost() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->host_waits == 0) return std::chrono::nanoseconds{0};
  return std::chrono::steady_clock::now() - state_->host_wait_began_or_ended;
}

bool WorkQueue::idle() const { return state_->unfinished.load(std::memory_order_acquire) == 0; }

void WorkQueue::ensureThread() {
  if (state_->process != 0) return;
  state_->process = getpid();
  state_->thread = std::thread([state = state_] { work(state); });
}

void WorkQueue::ensureSecondThread(const std::shared_ptr<State>& state) {
  if (state->closed || state->process != getpid()) return;
  if (!state->second_thread.joinable())
    state->second_thread = std::thread([state] { overtake(state); });
  state->host_wait_changed.notify_all();
}

std::unique_ptr<Task> WorkQueue::push(std::unique_ptr<Task> task) {
  {
    const std::lock_guard lock(state_->mutex);
    const bool foreign = state_->process != 0 && state_->process != getpid();
    if (state_->closed || foreign) return task;
    ensureThread();
    state_->waiting.push_back(std::move(task));
    state_->unfinished.fetch_add(1, std::memory_order_release);
    ++state_->pushed;
    if (state_->host_waits > 0) ensureSecondThread(state_);
  }
  state_->changed.notify_all();
  return nullptr;
}

void WorkQueue::work(const std::shared_ptr<State>& state) {
  on_worker_thread = true;
  std::unique_lock lock(state->mutex);
  while (true) {
    const auto wanted = [&] {
      return !state->overtaking && (state->closed || !state->waiting.empty());
    };
    if (!state->changed.wait_until(lock, std::chrono::system_clock::now() + kIdle, wanted)) {
      runtime::releaseThreadMemory();
      state->changed.wait(lock, wanted);
    }
    if (state->waiting.empty()) return;
    auto task = std::move(state->waiting.front());
    state->waiting.pop_front();
    state->running = true;
    lock.unlock();
    task->run();
    task.reset();
    lock.lock();
    state->running = false;
    state->ahead = 0;
    state->unfinished.fetch_sub(1, std::memory_order_release);
    state->changed.notify_all();
  }
}

/// The second thread: runs the first task in the queue once the running task has waited for the
/// host for as long as the first task's patience.
void WorkQueue::overtake(const std::shared_ptr<State>& state) {
  on_worker_thread = true;
  std::unique_lock lock(state->mutex);
  while (!state->closed) {
    if (state->host_waits == 0 || state->waiting.empty()) {
      state->host_wait_changed.wait(lock);
      continue;
    }
    const auto& first = *state->waiting.front();
    const auto begin = state->waits_since + first.patience();
    const auto now = std::chrono::steady_clock::now();
    if (now < begin || !first.mayOvertake()) {
      state->host_wait_changed.wait_until(lock, std::max(begin, now + kLook));
      continue;
    }
    auto task = std::move(state->waiting.front());
    state->waiting.pop_front();
    state->overtaking = true;
    lock.unlock();
    task->runAside();
    task.reset();
    lock.lock();
    state->overtaking = false;
    if (state->running) ++state->ahead;
    state->unfinished.fetch_sub(1, std::memory_order_release);
    state->changed.notify_all();
  }
}

/// Does not wait for tasks that others push meanwhile: they may never stop.
void WorkQueue::drain() {
  std::unique_lock lock(state_->mutex);
  if (on_worker_thread || state_->process != getpid()) return;
  const auto last = state_->pushed;
  state_->changed.wait(
      lock, [&] { return state_->pushed - state_->unfinished.load() >= last + state_->ahead; });
}

void WorkQueue::waitUntilAtMost(std::size_t count) {
  if (state_->unfinished.load(std::memory_order_acquire) <= count || on_worker_thread) return;
  std::unique_lock lock(state_->mutex);
  if (state_->process != getpid()) return;
  state_->changed.wait(lock, [&] { return state_->unfinished.load() <= count; });
}

void WorkQueue::close() {
  std::deque<std::unique_ptr<Task>> dropped;
  std::thread thread, second_thread;
  bool foreign = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    foreign = state_->process != 0 && state_->process != getpid();
    dropped.swap(state_->waiting);
    state_->unfinished.fetch_sub(dropped.size(), std::memory_order_release);
    thread.swap(state_->thread);
    second_thread.swap(state_->second_thread);
  }
  state_->changed.notify_all();
  state_->host_wait_changed.notify_all();
  const auto closed = makeFailure(PJRT_Error_Code_CANCELLED,
                                  "[ipu device] was closed before the program could run.");
  for (auto& task : dropped) task->fail(closed);
  for (auto* each : {&second_thread, &thread}) {
    if (!each->joinable()) continue;
    if (foreign || on_worker_thread) {
      each->detach();
    } else {
      each->join();
    }
  }
}

}  // namespace ipujax::plugin
