#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "executable.hpp"
#include "pjrt_abi.hpp"

namespace ipujax::plugin {

/// Records the runs of programs while JAX traces. Tracing covers the whole process, not one client.
/// Thread-safe; while nothing is traced, a run costs one read of `isOn`.
class RunRecorder {
 public:
  struct Run {
    std::shared_ptr<const Program> program;
    std::vector<int> devices;
    std::int64_t begin_nanoseconds;  ///< since 1970
    std::int64_t nanoseconds;        ///< time that the host took
  };

  static RunRecorder& shared();
  static std::int64_t now();  ///< nanoseconds since 1970

  bool isOn() const { return is_on_.load(std::memory_order_relaxed); }
  void start();
  std::vector<Run> stop();  ///< returns the runs since `start`
  void add(Run run);

 private:
  std::atomic<bool> is_on_{false};
  std::mutex mutex_;
  std::vector<Run> runs_;
};

namespace profiler {

/// The Profiler extension, to be chained into the API: jax.profiler.trace asks it for the planes of
/// the devices.
PJRT_Extension_Base* extension(PJRT_Extension_Base* next);

}  // namespace profiler
}  // namespace ipujax::plugin
