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
#include "hosts/ProgramPeers.hpp"

namespace ipujax::plugin {

/// How long a callback may take before later programs overtake its own and callers go on.
constexpr std::chrono::milliseconds kPatience{100};

/// One program made ready on its devices, one for each replica in this process, and its run time
/// there. Shared with its launches.
struct Placement {
  Placement(std::shared_ptr<const Program> program, std::vector<Device*> devices,
            std::shared_ptr<hosts::ProgramPeers> peers);

  const std::shared_ptr<const Program> program;
  const std::vector<Device*> devices;
  const std::shared_ptr<hosts::ProgramPeers> peers;            ///< null where all replicas are here
  const std::vector<std::shared_ptr<DeviceRuntime>> runtimes;  ///< by device
  const std::shared_ptr<runtime::Session> session;             ///< null without devices
  std::atomic<float> microseconds{-1};  ///< the time of a run; negative while unknown
  std::atomic<float> last_microseconds{-1};
  mutable std::atomic<bool> has_feeds{false};  ///< known once a run has used one
  std::atomic<bool> waits_long{false};         ///< the last run waited long for the host

  bool isShort() const;
  /// Whether callers wait for its callbacks: their output is then there when the call returns, as
  /// users of JAX's CPU backend expect.
  bool callsBackShortly() const;
  /// Waits for a launch with callbacks, however long it computes, unless a callback on any of `all`
  /// takes long: that callback may itself wait for what the caller does next.
  void awaitCallbacks(const Event& done, std::span<PJRT_Device* const> all);
  void timed(float us);
  bool idle() const;  ///< nothing waits or runs on any device
  /// The run mutex of every device, or none of them.
  std::vector<std::unique_lock<std::mutex>> tryLockAll() const;
  /// The same from inside a host callback, whose own thread may hold some of them.
  std::vector<std::unique_lock<std::mutex>> tryLockOthers() const;
};

}  // namespace ipujax::plugin
