#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "embedded/Package.hpp"

namespace ipujax::embedded {

/// How long a call may take; 0 means the session's time-out, and for the session: for ever.
using Timeout = std::chrono::microseconds;

/// An array that callers pass or get.
struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::size_t bytes = 0;  ///< 0 for an argument that the program does not use
};

/// The callers' arrays: row-major, in the order of `inputs()` and `outputs()`. They must outlive
/// the run and not overlap. Arrays at multiples of 64 bytes are used in place, others are copied.
struct Arrays {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;  ///< null for results that are not wanted
};

/// A submitted run. Thread-safe.
class Run {
 public:
  virtual ~Run() = default;
  virtual bool isDone() const = 0;
  /// Throws the run's error, or one with status kTimeout if the run has not ended by then.
  virtual void wait(Timeout timeout = Timeout{0}) = 0;
};

/// A saved program on a device of its own, and the arrays that it keeps there. Thread-safe; one run
/// executes at a time.
///
/// A stored argument that was donated is state: the result that takes over its memory is its value
/// in the next run. A run that fails leaves it as it was.
class Session {
 public:
  struct Options {
    Timeout timeout{0};
    std::size_t queue_depth = 64;  ///< runs that may wait; `submit` waits for a place
  };

  /// Throws Error if this build cannot run the file.
  static std::unique_ptr<Session> open(const std::filesystem::path& path, const Options& options);
  explicit Session(std::shared_ptr<const Package> package)
      : Session(std::move(package), Options{}) {}
  Session(std::shared_ptr<const Package> package, const Options& options);
  ~Session();  ///< closes
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Package& package() const;
  const std::vector<Tensor>& inputs() const;   ///< arguments that are not stored
  const std::vector<Tensor>& outputs() const;  ///< all results
  const std::vector<Tensor>& stored() const;   ///< arguments that are stored
  std::size_t queueDepth() const;              ///< runs that may wait

  /// Throws Error; kTimeout if the device was not free in time or the run did not end in time, and
  /// was therefore cancelled at its next step.
  void run(const Arrays& arrays, Timeout timeout = Timeout{0});
  /// The same on the session's own thread, in the order of calls.
  std::shared_ptr<Run> submit(Arrays arrays, Timeout timeout = Timeout{0});

  /// A new value of a stored argument, from the next run on. `setStored` checks all values before
  /// it changes the first.
  struct NewValue {
    std::string name;
    std::span<const std::byte> elements;
  };
  void setStored(std::span<const NewValue> values);
  void readStored(const std::string& name, std::span<std::byte> elements) const;

  /// Sets the seed of the random bits of stochastic rounding, for runs that begin from now on; 0 at
  /// first. The n-th run after a call draws the same bits as after any other call with this seed.
  void resetSeed(std::uint64_t seed, bool identical_replicas = false);

  /// Ends the run in progress, fails waiting runs with kClosed, and returns when none is left.
  /// Later calls throw kClosed.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ipujax::embedded
