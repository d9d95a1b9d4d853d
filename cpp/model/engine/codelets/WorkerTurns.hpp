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

/// Workers of one vertex wait for something that no remaining worker writes.
class WorkersWait : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A worker of a vertex did something that ends a process.
struct WorkerFault : CodeletFault {
  WorkerFault(unsigned number, const CodeletFault& fault) : CodeletFault(fault), worker(number) {}
  unsigned worker;
};

/// Calls the workers of vertices for one thread. On the IPU a vertex's workers run side by side,
/// and may wait for others' writes to memory. Here they take turns, the last worker first. A turn
/// ends when the worker is done; when it waits (WorkerState.hpp); or after a number of blocks of
/// its code, which is small at first while another worker waits for something it may write.
/// Workers that are not done when another's turn comes are on threads of their own.
class WorkerTurns {
 public:
  /// The memory that the workers of the running vertex share, and their thread's registers.
  struct Vertex {
    std::function<std::vector<IpujaxRange>()> memory;
    std::function<IpujaxRange()> registers;
    std::function<std::uint64_t&()> unseen;  ///< blocks before the thread next asks
  };
  using Call = std::function<void(unsigned worker)>;

  /// `enter` is called first on threads other than that of run(). Supervisors that this thread runs
  /// start their workers here, too.
  WorkerTurns(Vertex vertex, std::function<void()> enter);
  ~WorkerTurns();
  WorkerTurns(const WorkerTurns&) = delete;
  WorkerTurns& operator=(const WorkerTurns&) = delete;

  /// Runs all workers. Throws the exception of the first one to fail, WorkerFault or WorkersWait:
  /// then the others end where they are, without destructors, or do not run.
  void run(const Call& call);

  /// The functions that a library of codelets calls if its workers may wait.
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
    const void* stack = nullptr;  ///< its start
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

  // Belong to the worker whose turn it is; the mutex passes them on.
  std::array<Worker, kIpujaxWorkers> workers_;
  unsigned live_ = 0;
  unsigned stuck_ = 0;  ///< consecutive turns that ended waiting, with this memory
  std::uint64_t stuck_memory_ = 0;
  std::exception_ptr failure_;

  static constexpr unsigned kNone = kIpujaxWorkers;
  std::mutex mutex_;  ///< guards the members below
  unsigned starts_ = kNone;
  unsigned resumes_ = kNone;
  bool all_done_ = false;
  bool quits_ = false;
  std::condition_variable all_done_changed_;
};

}  // namespace ipujax::engine
