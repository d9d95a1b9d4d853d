#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "embedded/Session.hpp"
#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

/// Runs requests of few samples from many threads together, in batches of the program. All arrays
/// that callers pass or get have samples along their first axis, whose size in the program is the
/// batch's. A batch runs when it is full, or `delay` after its first request; places without a
/// request are zeros.
class Batcher {
 public:
  /// The session must outlive it. Throws kInvalidArgument if its arrays have no such axis.
  Batcher(Session& session, Timeout delay);
  ~Batcher();  ///< closes
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  std::size_t batchSize() const { return batch_; }
  /// Runs arrays of `samples` samples; returns when the results are there. Throws what the batch's
  /// run throws, and kTimeout if the request is still waiting at the time-out.
  void run(Arrays arrays, std::size_t samples, Timeout timeout = Timeout{0});
  /// The same without waiting for the results; waits only while as many batches of requests wait as
  /// the session may queue runs. A request whose turn comes too late ends with kTimeout.
  std::shared_ptr<Run> submit(Arrays arrays, std::size_t samples, Timeout timeout = Timeout{0});
  /// Fails waiting requests with kClosed.
  void close();

 private:
  class Request;
  using Requests = std::vector<std::shared_ptr<Request>>;
  std::shared_ptr<Request> push(Arrays arrays, std::size_t samples, Clock::time_point deadline);
  bool withdraw(const std::shared_ptr<Request>& request);
  void work();
  Requests take(std::unique_lock<std::mutex>& lock);
  void runBatch(const Requests& requests);

  Session& session_;
  const Timeout delay_;
  std::size_t batch_ = 0;
  std::vector<AlignedBytes> inputs_;
  std::vector<AlignedBytes> outputs_;
  std::mutex mutex_;
  std::condition_variable changed_;  // the thread waits for requests
  std::condition_variable places_;   // callers wait for a place
  std::deque<std::shared_ptr<Request>> waiting_;
  std::size_t waiting_samples_ = 0;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace ipujax::embedded
