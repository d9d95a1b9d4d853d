#include "placement.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "handle.hpp"

namespace ipujax::plugin {
namespace {

/// Handing a program to the device's thread costs a few microseconds. A program of up to some tens
/// of microseconds ends sooner if the caller runs it.
constexpr float kShortMicroseconds = 100;

/// Callers wait for host callbacks of programs that take no longer than this: printing takes less,
/// a training step with I/O takes more.
constexpr float kShortCallbackMicroseconds = 5000;

/// A caller checks at this interval whether its program is done, so that it is late by less than a
/// callback takes. On a busy machine checks are further apart and callbacks as slow, so an interval
/// counts for at most `kLongestLook`. After `kStopped` the process was not running at all.
constexpr std::chrono::microseconds kLook{50};
constexpr std::chrono::milliseconds kLongestLook{20};
constexpr std::chrono::seconds kStopped{1};

std::vector<std::shared_ptr<DeviceRuntime>> runtimesOf(const std::vector<Device*>& devices) {
  std::vector<std::shared_ptr<DeviceRuntime>> runtimes;
  for (auto* device : devices) runtimes.push_back(device->runtime());
  return runtimes;
}

std::shared_ptr<runtime::Session> sessionOf(
    const Program& program, const std::vector<std::shared_ptr<DeviceRuntime>>& runtimes,
    const std::shared_ptr<hosts::ProgramPeers>& peers) {
  if (runtimes.empty()) return nullptr;
  runtime::DeviceStates states;
  for (const auto& runtime : runtimes) states.push_back(runtime->state);
  return program.compiled().open(states, peers);
}

}  // namespace

Placement::Placement(std::shared_ptr<const Program> the_program, std::vector<Device*> the_devices,
                     std::shared_ptr<hosts::ProgramPeers> the_peers)
    : program(std::move(the_program)),
      devices(std::move(the_devices)),
      peers(std::move(the_peers)),
      runtimes(runtimesOf(devices)),
      session(sessionOf(*program, runtimes, peers)) {}

bool Placement::idle() const {
  return std::ranges::all_of(devices, [](auto* device) { return device->queue().idle(); });
}

std::vector<std::unique_lock<std::mutex>> Placement::tryLockAll() const {
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(runtimes.size());
  for (const auto& runtime : runtimes) {
    if (!locks.emplace_back(runtime->run_mutex, std::try_to_lock).owns_lock()) return {};
  }
  return locks;
}

std::vector<std::unique_lock<std::mutex>> Placement::tryLockOthers() const {
  for (const auto& runtime : runtimes) {
    const std::lock_guard lock(runtime->running_mutex);
    if (runtime->running) return {};
  }
  return tryLockAll();
}

bool Placement::isShort() const {
  if (program->signature().has_host_callbacks || peers) return false;
  const float late = microseconds.load(std::memory_order_relaxed);
  return late < 0 ? program->compiled().looksShort() : late <= kShortMicroseconds;
}

bool Placement::callsBackShortly() const {
  return program->signature().has_host_callbacks && !waits_long.load(std::memory_order_relaxed) &&
         microseconds.load(std::memory_order_relaxed) <= kShortCallbackMicroseconds;
}

void Placement::awaitCallbacks(const Event& done, std::span<PJRT_Device* const> all) {
  using Clock = std::chrono::steady_clock;
  const auto held = [](auto* device) {
    return object<Device>(device).queue().heldByHost() >= kPatience;
  };
  std::chrono::nanoseconds waited{0};
  for (auto last = Clock::now(); !done.isReady();) {
    std::this_thread::sleep_for(kLook);
    const auto look = Clock::now() - last;
    last += look;
    waited = look < kStopped ? waited + std::min<Clock::duration>(look, kLongestLook)
                             : std::chrono::nanoseconds{0};
    if (waited < kPatience) continue;
    if (has_feeds.load(std::memory_order_relaxed)) return;  // usually by the caller
    if (std::ranges::none_of(all, held)) continue;
    waits_long.store(true, std::memory_order_relaxed);
    return;
  }
}

/// The shorter of the last two runs counts, so that one hiccup of the host changes nothing. With
/// callbacks it is the shortest run of all but the first, which may import modules.
void Placement::timed(float us) {
  float last = last_microseconds.exchange(us, std::memory_order_relaxed);
  if (program->signature().has_host_callbacks) {
    if (us < std::chrono::duration<float, std::micro>(kPatience).count()) waits_long.store(false);
    if (last < 0) return;
    last = microseconds.load(std::memory_order_relaxed);
  }
  microseconds.store(last < 0 ? us : std::min(us, last), std::memory_order_relaxed);
}

}  // namespace ipujax::plugin
