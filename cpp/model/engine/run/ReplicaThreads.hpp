#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace ipujax::engine {

/// The process's threads for replicas that call the host. A callback may wait for that of another
/// replica, so all of them need a thread at the same time, however few cores there are. Threads are
/// started when they are first needed and kept for the next run. Several threads may call
/// `runTogether` at once, and so may its tasks: no call waits for a busy thread. After a fork the
/// child starts its own.
class ReplicaThreads {
 public:
  static ReplicaThreads& shared();
  ~ReplicaThreads() = delete;

  /// Runs task(0) ... task(count - 1), all at the same time, the first of them in the caller;
  /// returns when all have ended. Rethrows the first exception.
  void runTogether(std::uint32_t count, const std::function<void(std::uint32_t)>& task);
  std::size_t numThreads() const;  ///< that were started, busy or not

 private:
  ReplicaThreads();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ipujax::engine
