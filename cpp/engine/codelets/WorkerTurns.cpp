#include "engine/codelets/WorkerTurns.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ipujax::engine {
namespace {

/// Blocks of code: of a turn, and of each worker before all that are left are said to wait. The
/// latter is for what is not seen to change: memory that codelets allocate, the state of a library.
constexpr std::uint64_t kLongestTurn = 1 << 16;
constexpr unsigned kRounds = 20;  // whose turns double in length

thread_local WorkerTurns* turns_here = nullptr;  // of the newest on this thread
struct Mine {
  WorkerTurns* turns = nullptr;
  unsigned worker = 0;
};
thread_local Mine mine;  // the worker that this thread runs

}  // namespace

const IpujaxTurns* WorkerTurns::entries() {
  static constexpr IpujaxTurns all{poll, runAll};
  return &all;
}

WorkerTurns::WorkerTurns(Vertex vertex, std::function<void()> enter)
    : vertex_(std::move(vertex)),
      enter_(std::move(enter)),
      outer_(std::exchange(turns_here, this)) {
  std::fegetenv(&environment_);
}

WorkerTurns::~WorkerTurns() {
  turns_here = outer_;
  {
    const Lock lock(mutex_);
    quits_ = true;
    for (Worker& worker : workers_) worker.turn.notify_one();
  }
  for (Worker& worker : workers_)
    if (worker.thread.joinable()) worker.thread.join();
}

void WorkerTurns::run(const Call& call) {
  call_ = &call;
  live_ = kIpujaxWorkers;
  stuck_ = 0;
  for (Worker& worker : workers_) worker.status = Status::kNew;
  for (unsigned next = kIpujaxWorkers; next-- > 0 && !failure_;) {
    if (workers_[next].status != Status::kNew) continue;
    runHere(next);
    const auto started = [](const Worker& w) { return w.status == Status::kStarted; };
    if (std::none_of(workers_.begin(), workers_.end(), started)) continue;
    Lock lock(mutex_);
    passOn(next, lock);
    all_done_changed_.wait(lock, [&] { return all_done_; });
    all_done_ = false;
    break;
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Whether there are turns here: none for a worker's own workers.
int WorkerTurns::runAll(void (*call)(void*, unsigned), void* context) {
  if (turns_here == nullptr || mine.turns != nullptr) return 0;
  turns_here->run([&](unsigned worker) { call(context, worker); });
  return 1;
}

void WorkerTurns::runHere(unsigned worker) {
  Worker& me = workers_[worker];
  me.status = Status::kStarted;
  me.waits = false;
  me.blocks = 0;
  me.length = 1;
  me.took = 0;
  me.state.forget();
  std::jmp_buf end;
  me.end = &end;
  me.stack = __builtin_frame_address(0);
  me.registers = vertex_.registers();
  mine = {this, worker};
  if (setjmp(end) == 0) {
    try {
      (*call_)(worker);
    } catch (...) {
      failWith(std::current_exception());
    }
  }
  mine = {};
  finish(me);
}

void WorkerTurns::finish(Worker& worker) {
  worker.status = Status::kDone;
  worker.waits = false;
  --live_;
  stuck_ = 0;
}

void WorkerTurns::failWith(std::exception_ptr failure) {
  if (!failure_) failure_ = std::move(failure);
}

/// At a block of a worker's code.
void WorkerTurns::poll(const void* registers, std::size_t bytes, const void* frame) {
  if (mine.turns != nullptr)
    mine.turns->look(mine.turns->workers_[mine.worker], registers, bytes, frame);
}

void WorkerTurns::look(Worker& me, const void* registers, std::size_t bytes, const void* frame) {
  ++me.blocks;
  if (me.blocks >= unobserved()) {
    const WorkerState::Own own{
        {registers, static_cast<const char*>(registers) + bytes}, {frame, me.stack}, me.registers};
    if (me.state.waits(own, [&] { return hashOf(vertex_.memory()); })) return endTurn(me, true);
  }
  if (me.blocks >= longestTurn(me)) endTurn(me, false);
}

/// The blocks of a turn in which no one looks whether the worker waits: where all do, more and
/// more.
std::uint64_t WorkerTurns::unobserved() const { return std::uint64_t{1} << (stuck_ / live_); }

/// Short after another has waited, which may be for what this one will write for a short time
/// alone.
std::uint64_t WorkerTurns::longestTurn(const Worker& me) const {
  const bool others_wait = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& other) {
    return &other != &me && other.waits;
  });
  return others_wait ? std::max(me.length, unobserved() + 2 * me.took) : kLongestTurn;
}

void WorkerTurns::endTurn(Worker& me, bool waits) {
  me.waits = waits;
  if (waits) {
    me.took = me.blocks - unobserved();
    me.length = 1;
    countWaiting(me.state.memory());
  } else {
    me.length = std::min(me.length + me.length / 4 + 1, kLongestTurn);
    stuck_ = 0;
  }
  if (!failure_) {
    const auto worker = static_cast<unsigned>(&me - workers_.data());
    Lock lock(mutex_);
    passOn(worker, lock);
    me.turn.wait(lock, [&] { return resumes_ == worker; });
    resumes_ = kNone;
  }
  if (failure_) std::longjmp(*me.end, 1);
  me.blocks = 0;
  me.state.forget();
}

void WorkerTurns::countWaiting(std::uint64_t memory) {
  stuck_ = memory == stuck_memory_ ? stuck_ + 1 : 1;
  stuck_memory_ = memory;
  if (stuck_ >= kRounds * live_) failWith(std::make_exception_ptr(WorkersWait(waiting())));
}

std::string WorkerTurns::waiting() const {
  std::string numbers;
  for (unsigned i = 0; i < kIpujaxWorkers; ++i) {
    if (workers_[i].status != Status::kStarted) continue;
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(i);
  }
  return "worker " + numbers + (live_ == 1 ? " waits" : " wait") +
         " for memory that no worker is left to write";
}

/// To the next worker that is not done, which may be this one.
void WorkerTurns::passOn(unsigned worker, const Lock&) {
  for (unsigned i = 1; i <= kIpujaxWorkers; ++i) {
    const unsigned next = (worker + kIpujaxWorkers - i) % kIpujaxWorkers;
    Worker& other = workers_[next];
    if (other.status == Status::kNew && (failure_ || !hasThread(next))) finish(other);
    if (other.status == Status::kDone) continue;
    (other.status == Status::kNew ? starts_ : resumes_) = next;
    return other.turn.notify_all();
  }
  all_done_ = true;
  all_done_changed_.notify_one();
}

bool WorkerTurns::hasThread(unsigned worker) {
  std::thread& thread = workers_[worker].thread;
  try {
    if (!thread.joinable()) thread = std::thread([this, worker] { serve(worker); });
    return true;
  } catch (const std::system_error&) {  // none is left
    failWith(std::current_exception());
    return false;
  }
}

/// The thread of a worker, for one vertex after another.
void WorkerTurns::serve(unsigned worker) {
  std::fesetenv(&environment_);
  enter_();
  Lock lock(mutex_);
  for (;;) {
    workers_[worker].turn.wait(lock, [&] { return quits_ || starts_ == worker; });
    if (quits_) return;
    starts_ = kNone;
    lock.unlock();
    runHere(worker);
    lock.lock();
    passOn(worker, lock);
  }
}

}  // namespace ipujax::engine
