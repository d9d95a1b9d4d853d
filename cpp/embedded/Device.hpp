#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embedded/Session.hpp"
#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

/// A program on its devices, one for each replica, and the arrays that it keeps there. Runs wait
/// for each other.
class Device {
 public:
  explicit Device(std::shared_ptr<const Package> package);

  /// Throws kTimeout, and kClosed where the session was closed while the run waited or was
  /// cancelled for it.
  void run(const Arrays& arrays, Clock::time_point deadline, const std::atomic<bool>& is_closed);
  /// The run in progress ends where it can.
  void cancel();
  void resetSeed(std::uint64_t seed, bool identical_replicas) {
    seeds_.reset(seed, identical_replicas);
  }
  void setStored(std::span<const Session::NewValue> values);
  void readStored(const std::string& name, std::span<std::byte> elements);

 private:
  /// What one replica has of an input.
  struct InputShard {
    std::shared_ptr<AlignedBytes> elements;  // where it is stored
    const std::byte* data = nullptr;         // of stored elements, at first in the file
    std::uint64_t contents = 0;              // their number, for sessions that ask
    std::optional<std::size_t> piece;        // where it begins in a caller's array, if in one piece
    AlignedBytes aligned;                    // a copy of what cannot be used where it is
  };
  struct OutputShard {
    std::shared_ptr<AlignedBytes> next;  // of state
    std::optional<std::size_t> piece;
    bool is_given = false;  // callers get it: no replica before has the same
    AlignedBytes aligned;
  };
  /// What one input or output of the program is to a caller.
  struct Input {
    std::string name;
    std::size_t argument = 0;  // of the caller's arrays, if it is not stored
    bool is_stored = false;
    ShardCopies copies;
    std::vector<InputShard> shards;  // by replica
  };
  struct Output {
    std::size_t result = 0;
    int state = -1;  // the stored input that it is the next value of
    ShardCopies copies;
    std::vector<OutputShard> shards;
  };
  using Elements = std::vector<std::shared_ptr<AlignedBytes>>;  // by replica

  void describeInput(const Leaf& leaf, std::size_t argument, std::size_t position);
  void describeOutput(const Leaf& leaf, std::size_t result);
  void bind(const Arrays& arrays);
  void numberContents();
  const void* bound(Input& input, std::size_t replica, const Arrays& arrays);
  void* bound(Output& output, std::size_t replica, const Arrays& arrays);
  static Elements divided(const Input& input, const std::byte* whole);
  void keep(Input& input, Elements elements);
  void keepState(Input& input, Output& output, std::size_t slot);
  void runOnce(Clock::time_point deadline, const std::atomic<bool>& is_closed,
               const runtime::RunSeed& seed);
  void give(const Arrays& arrays);
  Input& storedByName(const std::string& name);

  const std::shared_ptr<const Package> package_;
  std::timed_mutex mutex_;  // one run at a time, or a change of what is stored
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  /// What one run has on one replica.
  struct Bound {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<std::uint64_t> input_contents;
    std::vector<std::uint64_t> output_contents;
  };
  std::vector<Bound> bound_;
  std::vector<runtime::Arrays> arrays_;
  std::unique_ptr<runtime::Session> session_;
  runtime::RunSeeds seeds_;
  bool may_have_late_cancel_ = false;  // which came when its run had just ended
  Watchdog watchdog_;
};

}  // namespace ipujax::embedded
