#include "engine/codelets/WorkerTurns.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ipujax::engine {
namespace {

/// Lengths of turns in blocks of code: the longest while another worker waits; the first one and
/// the longest while none does. Observing a worker takes as long as some twenty blocks, so it runs
/// most of a long turn unobserved.
constexpr std::uint64_t kLongestTurn = 1 << 16;
constexpr std::uint64_t kFirstAlone = 1 << 14;
constexpr std::uint64_t kLongestAlone = 1 << 20;
constexpr std::uint64_t kObservedWhole = 1 << 12;  // turns below

/// Rounds of turns, each twice as long, before all remaining workers are said to wait: some changes
/// are not seen, such as those in memory that codelets allocate.
constexpr unsigned kRounds = 20;

thread_local WorkerTurns* turns_here = nullptr;  // the newest on this thread
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

/// Returns whether there are turns here to run the workers: none for a worker's own workers.
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
  me.alone = kFirstAlone;
  me.took = 0;
  me.state.forget();
  me.stack = __builtin_frame_address(0);
  me.registers = vertex_.registers();
  vertex_.unseen() = me.unseen = unseen(me);
  mine = {this, worker};
  try {
    guarded([&] { (*call_)(worker); });
  } catch (const CodeletFault& fault) {
    failWith(std::make_exception_ptr(WorkerFault(worker, fault)));
  } catch (...) {
    failWith(std::current_exception());
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

/// Called at a block of a worker's code.
std::uint64_t WorkerTurns::poll(const void* registers, std::size_t bytes, const void* frame) {
  if (mine.turns == nullptr) return ~std::uint64_t{0};  // until a worker runs here
  Worker& me = mine.turns->workers_[mine.worker];
  mine.turns->look(me, registers, bytes, frame);
  return me.unseen = mine.turns->unseen(me);
}

void WorkerTurns::look(Worker& me, const void* registers, std::size_t bytes, const void* frame) {
  me.blocks += me.unseen + 1;
  const std::uint64_t unobserved = this->unobserved(me);
  if (me.blocks >= unobserved) {
    const WorkerState::Own own{
        {registers, static_cast<const char*>(registers) + bytes}, {frame, me.stack}, me.registers};
    if (me.state.waits(own, [&] { return hashOf(vertex_.memory()); })) return endTurn(me, true);
  }
  if (me.blocks >= std::max(length(me), unobserved + 2 * me.took)) endTurn(me, false);
}

bool WorkerTurns::othersWait(const Worker& me) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const Worker& other) { return &other != &me && other.waits; });
}

/// The length of a turn: short while another worker waits, since it may wait for a value that this
/// one writes only for a short time.
std::uint64_t WorkerTurns::length(const Worker& me) const {
  return othersWait(me) ? me.length : me.alone;
}

/// The blocks of a turn during which it is not checked whether the worker waits: more and more
/// while all workers wait.
std::uint64_t WorkerTurns::unobserved(const Worker& me) const {
  const std::uint64_t turn = length(me);
  const std::uint64_t most = turn < kObservedWhole ? 1 : turn - turn / 16;
  return std::max(most, std::uint64_t{1} << (stuck_ / live_));
}

/// Blocks until the next look.
std::uint64_t WorkerTurns::unseen(const Worker& me) const {
  const std::uint64_t first = unobserved(me);
  return first > me.blocks ? first - me.blocks - 1 : 0;
}

void WorkerTurns::endTurn(Worker& me, bool waits) {
  if (waits) {
    me.took = me.blocks - unobserved(me);
    me.length = 1;
    countWaiting(me.state.memory());
  } else {
    if (othersWait(me))
      me.length = std::min(me.length + me.length / 4 + 1, kLongestTurn);
    else
      me.alone = std::min(2 * me.alone, kLongestAlone);
    stuck_ = 0;
  }
  me.waits = waits;
  if (!failure_) {
    const auto worker = static_cast<unsigned>(&me - workers_.data());
    Lock lock(mutex_);
    passOn(worker, lock);
    me.turn.wait(lock, [&] { return resumes_ == worker; });
    resumes_ = kNone;
  }
  if (failure_) leaveGuarded("ends, since another worker failed");
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

/// Passes the turn to the next worker that is not done, which may be this one.
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
  } catch (const std::system_error&) {  // no thread is left
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
