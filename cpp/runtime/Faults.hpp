#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/DeviceError.hpp"

namespace ipujax::runtime {

/// How a device fails.
enum class Fault : std::uint8_t { kLinkError, kHostLinkTimeout, kEcc, kExchangeParity, kPower };

/// Failures that tests injected, for all devices of the process.
class Faults {
 public:
  static Faults& shared();
  void inject(std::string_view kind, std::uint64_t at_run, std::string_view program);
  void clear();
  /// Ends the failures that this recovery repairs.
  void reset(Recovery recovery);
  /// Whether any failure was injected since the last clear, even if a reset ended it.
  bool isInUse() const { return is_in_use_.load(std::memory_order_relaxed); }

  /// Called before a program runs: returns the failure that is due or not yet repaired, if any.
  std::optional<Fault> beginRun(const std::string& program) {
    if (!are_any_.load(std::memory_order_relaxed)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto* failed = check(program);
    return failed ? std::optional(failed->kind) : std::nullopt;
  }
  /// The same, but throws the failure as a DeviceError.
  void failRun(const std::string& program) {
    if (are_any_.load(std::memory_order_relaxed)) throwDue(program);
  }

 private:
  struct Injected {
    Fault kind;
    Recovery recovery;
    std::uint64_t runs_left;  // 0 once it failed
    std::string program;
    std::string failed_in;
  };
  const Injected* check(const std::string& program);
  void throwDue(const std::string& program);

  std::atomic<bool> are_any_{false};
  std::atomic<bool> is_in_use_{false};
  std::mutex mutex_;
  std::vector<Injected> faults_;
};

}  // namespace ipujax::runtime
