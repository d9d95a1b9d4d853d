#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "embedded/Session.hpp"
#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

/// Requests of few samples from many threads, run together in batches of the program. Every array
/// that callers pass or get has samples along its first axis, as many as the batch. A batch runs
/// when it is full, or `delay` after its first request; places without a request are zeros.
class Batcher {
 public:
  /// The session must outlive it. Throws kInvalidArgument where its arrays have no such axis.
  Batcher(Session& session, Timeout delay);
  ~Batcher();  ///< closes
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  std::size_t batchSize() const { return batch_; }
  /// Arrays of `samples` samples; returns when the results are there. Throws what the batch's run
  /// throws, and kTimeout where its request still waits by then.
  void run(const Arrays& arrays, std::size_t samples, Timeout timeout = Timeout{0});
  /// Fails requests that wait with kClosed.
  void close();

 private:
  struct Request;
  void work();
  std::vector<Request*> take(std::unique_lock<std::mutex>& lock);
  void runBatch(const std::vector<Request*>& requests);

  Session& session_;
  const Timeout delay_;
  std::size_t batch_ = 0;
  std::vector<AlignedBytes> inputs_;
  std::vector<AlignedBytes> outputs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> waiting_;  // on their callers' stacks
  std::size_t waiting_samples_ = 0;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace ipujax::embedded
