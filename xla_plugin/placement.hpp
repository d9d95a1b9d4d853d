#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device.hpp"
#include "event.hpp"
#include "executable.hpp"

namespace ipujax::plugin {

/// How long a callback may take before programs behind its own overtake it, and callers go on.
constexpr std::chrono::milliseconds kPatience{100};

/// One program made ready on its devices, one for each replica, and how long it takes there. Shared
/// with its launches.
struct Placement {
  Placement(std::shared_ptr<const Program> program, std::vector<Device*> devices);

  const std::shared_ptr<const Program> program;
  const std::vector<Device*> devices;
  const std::vector<std::shared_ptr<DeviceRuntime>> runtimes;  ///< by device
  const std::shared_ptr<runtime::Session> session;
  std::atomic<float> microseconds{-1};  ///< what a run takes; negative while not known
  std::atomic<float> last_microseconds{-1};
  mutable std::atomic<bool> has_feeds{false};  ///< known once a run has come to one
  std::atomic<bool> waits_long{false};         ///< for the host, in the last run

  bool isShort() const;
  /// Worth waiting for: what its callbacks print or record is there when the call returns, as users
  /// of JAX's CPU backend are used to.
  bool callsBackShortly() const;
  /// Waits for a launch with callbacks, whatever it computes, but not for a callback that takes
  /// long on any of `all`: it may itself wait for what the caller does next.
  void awaitCallbacks(const Event& done, std::span<PJRT_Device* const> all);
  void timed(float us);
  bool idle() const;  ///< nothing waits or runs on any device
  /// The run mutex of every device, or none of them.
  std::vector<std::unique_lock<std::mutex>> tryLockAll() const;
  /// The same from inside a host callback, whose own thread may hold some of them.
  std::vector<std::unique_lock<std::mutex>> tryLockOthers() const;
};

}  // namespace ipujax::plugin
