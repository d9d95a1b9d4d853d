#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/DeviceError.hpp"

namespace ipujax::model {

/// Failures that the model was told to have, for all devices of the process.
class Faults {
 public:
  static Faults& shared();
  void inject(std::string_view kind, std::uint64_t at_run, std::string_view program);
  void clear();
  /// Ends the failures for which this is enough.
  void reset(runtime::Recovery recovery);
  /// A program is about to run; throws DeviceError where a failure is due or was not repaired.
  void beginRun(const std::string& program) {
    if (are_any_.load(std::memory_order_relaxed)) check(program);
  }

 private:
  struct Fault {
    std::string_view needs;
    std::string_view got;
    runtime::Recovery recovery;
    std::uint64_t runs_left;  // 0 once it failed
    std::string program;
    std::string failed_in;
  };
  void check(const std::string& program);

  std::atomic<bool> are_any_{false};
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

}  // namespace ipujax::model
