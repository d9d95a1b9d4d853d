#pragma once
#include <array>
#include <cfenv>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/VertexAbi.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/WorkerState.hpp"

namespace ipujax::engine {

/// Workers of one vertex wait for what none of those that are left writes.
class WorkersWait : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a worker of a vertex did that ends a process.
struct WorkerFault : CodeletFault {
  WorkerFault(unsigned number, const CodeletFault& fault) : CodeletFault(fault), worker(number) {}
  unsigned worker;
};

/// Calls the workers of vertices for one thread. On the IPU a vertex's workers run side by side,
/// and may wait for what others write to memory. Here one at a time has its turn, the last worker
/// first. A turn ends where the worker is done; where it waits (WorkerState.hpp); or after a number
/// of blocks of its code, which is small at first while another waits for what it may write.
/// Workers that are not done when another's turn comes are on threads of their own.
class WorkerTurns {
 public:
  /// What the workers of the vertex that runs share, and their thread's registers.
  struct Vertex {
    std::function<std::vector<IpujaxRange>()> memory;
    std::function<IpujaxRange()> registers;
    std::function<std::uint64_t&()> unseen;  ///< blocks before the thread next asks
  };
  using Call = std::function<void(unsigned worker)>;

  /// `enter` comes first on other threads than that of run(). Supervisors that this thread runs
  /// start their workers here, too.
  WorkerTurns(Vertex vertex, std::function<void()> enter);
  ~WorkerTurns();
  WorkerTurns(const WorkerTurns&) = delete;
  WorkerTurns& operator=(const WorkerTurns&) = delete;

  /// Runs all workers. Rethrows what the first one to fail threw, WorkerFault or WorkersWait: then
  /// the others end where they are, without destructors, or do not run.
  void run(const Call& call);

  /// What a library of codelets whose workers may wait calls.
  static const IpujaxTurns* entries();

 private:
  enum class Status : std::uint8_t { kNew, kStarted, kDone };
  struct Worker {
    Status status = Status::kDone;
    bool waits = false;        ///< its last turn ended so
    std::uint64_t blocks = 0;  ///< in this turn
    std::uint64_t unseen = 0;  ///< of them, since it was last seen
    std::uint64_t length = 1;  ///< of its next turn while another waits, in blocks
    std::uint64_t alone = 0;   ///< length of its next turn while none waits
    std::uint64_t took = 0;    ///< blocks, until it was last seen to wait
    WorkerState state;
    const void* stack = nullptr;  ///< its begin
    IpujaxRange registers{};      ///< of an IPU
    std::condition_variable turn;
    std::thread thread;
  };
  using Lock = std::unique_lock<std::mutex>;

  static std::uint64_t poll(const void* registers, std::size_t bytes, const void* frame);
  static int runAll(void (*call)(void*, unsigned), void* context);

  void look(Worker& me, const void* registers, std::size_t bytes, const void* frame);
  void endTurn(Worker& me, bool waits);
  void countWaiting(std::uint64_t memory);
  bool othersWait(const Worker& me) const;
  std::uint64_t length(const Worker& me) const;
  std::uint64_t unobserved(const Worker& me) const;
  std::uint64_t unseen(const Worker& me) const;
  void runHere(unsigned worker);
  void serve(unsigned worker);
  void passOn(unsigned worker, const Lock&);
  bool hasThread(unsigned worker);
  void finish(Worker& worker);
  void failWith(std::exception_ptr failure);
  std::string waiting() const;

  const Vertex vertex_;
  const std::function<void()> enter_;
  std::fenv_t environment_{};  ///< of the thread that made this
  const Call* call_ = nullptr;
  WorkerTurns* const outer_;

  // Of the worker whose turn it is; the mutex hands them on.
  std::array<Worker, kIpujaxWorkers> workers_;
  unsigned live_ = 0;
  unsigned stuck_ = 0;  ///< turns one after another that ended waiting, with this memory
  std::uint64_t stuck_memory_ = 0;
  std::exception_ptr failure_;

  static constexpr unsigned kNone = kIpujaxWorkers;
  std::mutex mutex_;  ///< of what is below
  unsigned starts_ = kNone;
  unsigned resumes_ = kNone;
  bool all_done_ = false;
  bool quits_ = false;
  std::condition_variable all_done_changed_;
};

}  // namespace ipujax::engine
