#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "embedded/Session.hpp"
#include "embedded/Watchdog.hpp"

namespace ipujax::embedded {

/// A program on a device, and the arrays that it keeps there. Runs wait for each other.
class Device {
 public:
  explicit Device(std::shared_ptr<const Package> package);

  /// Throws kTimeout, and kClosed where the session was closed while the run waited or was
  /// cancelled for it.
  void run(const Arrays& arrays, Clock::time_point deadline, const std::atomic<bool>& is_closed);
  /// The run in progress ends where it can.
  void cancel();
  void setStored(std::span<const Session::NewValue> values);
  void readStored(const std::string& name, std::span<std::byte> elements);

 private:
  /// What one input or output of the program is to a caller.
  struct Input {
    std::size_t argument = 0;  // of the caller's arrays, if it is not stored
    bool is_stored = false;
    std::shared_ptr<AlignedBytes> elements;  // where it is stored
    const std::byte* data = nullptr;         // of stored elements, at first in the file
    std::uint64_t contents = 0;              // their number, for sessions that ask
    AlignedBytes aligned;                    // a copy of a caller's array that is not
    std::string name;
    std::size_t bytes = 0;
  };
  struct Output {
    std::size_t result = 0;
    int state = -1;  // the stored input that it is the next value of
    std::shared_ptr<AlignedBytes> next;
    AlignedBytes aligned;
    std::size_t bytes = 0;
  };

  void bind(const Arrays& arrays);
  void runOnce(Clock::time_point deadline, const std::atomic<bool>& is_closed);
  void give(const Arrays& arrays);
  Input& storedByName(const std::string& name);

  const std::shared_ptr<const Package> package_;
  std::timed_mutex mutex_;  // one run at a time, or a change of what is stored
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
  std::vector<std::uint64_t> input_contents_;
  std::vector<std::uint64_t> output_contents_;
  std::unique_ptr<runtime::Session> session_;
  bool may_have_late_cancel_ = false;  // which came when its run had just ended
  Watchdog watchdog_;
};

}  // namespace ipujax::embedded
