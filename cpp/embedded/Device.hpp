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

  /// Throws kTimeout, and kClosed if closing the session cancelled the run or came while it waited.
  void run(const Arrays& arrays, Clock::time_point deadline, const std::atomic<bool>& is_closed);
  /// Ends the run in progress as soon as possible.
  void cancel();
  void resetSeed(std::uint64_t seed, bool identical_replicas) {
    seeds_.reset(seed, identical_replicas);
  }
  void setStored(std::span<const Session::NewValue> values);
  void readStored(const std::string& name, std::span<std::byte> elements);

 private:
  /// One replica's part of an input.
  struct InputShard {
    std::shared_ptr<AlignedBytes> elements;  // if it is stored
    const std::byte* data = nullptr;         // stored elements, at first in the file
    std::uint64_t contents = 0;              // their number, for sessions that need it
    std::optional<std::size_t> piece;        // its offset in a caller's array, if in one piece
    AlignedBytes aligned;                    // a copy if it cannot be used in place
  };
  struct OutputShard {
    std::shared_ptr<AlignedBytes> next;  // of state
    std::optional<std::size_t> piece;
    bool is_given = false;  // callers get it: no earlier replica has the same
    AlignedBytes aligned;
  };
  /// How callers see one input or output of the program.
  struct Input {
    std::string name;
    std::size_t argument = 0;  // of the caller's arrays, if it is not stored
    bool is_stored = false;
    ShardCopies copies;
    std::vector<InputShard> shards;  // by replica
  };
  struct Output {
    std::size_t result = 0;
    int state = -1;  // the stored input whose next value this is
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
  std::timed_mutex mutex_;  // one run or change of stored arrays at a time
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  /// The arrays of one run on one replica.
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
  bool may_have_late_cancel_ = false;  // one that came just after its run ended
  Watchdog watchdog_;
};

}  // namespace ipujax::embedded
