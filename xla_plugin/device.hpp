#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "client_views.hpp"
#include "device_description.hpp"
#include "memory.hpp"
#include "platform_config.hpp"
#include "runtime/Program.hpp"
#include "work_queue.hpp"

namespace ipujax::plugin {

/// Counts what a device has done so far; read by tests and the benchmark.
struct DeviceCounters {
  std::atomic<std::int64_t> inline_runs{0};
  std::atomic<std::int64_t> queued_runs{0};
  std::atomic<std::int64_t> nested_runs{0};
  std::atomic<std::int64_t> donated_in_place{0};
  std::atomic<std::int64_t> donated_copied{0};
};

/// A program that runs. The threads of its devices share this object.
struct Run {
  const std::shared_ptr<runtime::Session> session;
  const std::uint64_t interrupts;  ///< their count when it was launched
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::atomic<bool> was_interrupted{false};
};

/// The state for running programs on a device. Launches share it, so that a program in flight ends
/// well if its client goes away.
struct DeviceRuntime {
  DeviceRuntime(std::shared_ptr<runtime::DeviceState> the_state, Connection the_connection)
      : state(std::move(the_state)), connection(the_connection) {}

  const std::shared_ptr<runtime::DeviceState> state;  ///< null on devices of other processes
  const Connection connection;
  DeviceCounters counters;
  std::atomic<int> queued_with_effects{0};  ///< waiting or running programs that call back or print
  std::mutex run_mutex;          ///< held while a program runs here: programs share the state
  std::mutex running_mutex;      ///< guards running
  std::shared_ptr<Run> running;  ///< to be cancelled at close or by Ctrl-C
  std::atomic<std::uint64_t> interrupts_obeyed{0};  ///< launches before this count fail
};

/// A group of IPUs that runs one program at a time. Owned by its client.
class Device final : public PJRT_Device {
 public:
  Device(int id, int process_index, int local_id, const PlatformConfig& config,
         std::shared_ptr<ClientViews> views);
  ~Device();

  DeviceDescription& description() { return description_; }
  int id() const { return description_.id(); }
  bool isAddressable() const { return local_id_ >= 0; }
  int localId() const { return local_id_; }
  Memory& memory(runtime::MemoryKind kind) { return memories_[static_cast<std::size_t>(kind)]; }
  Memory& defaultMemory() { return memory(runtime::MemoryKind::kDevice); }
  const std::array<PJRT_Memory*, kNumMemories>& memories() const { return memory_handles_; }
  const std::shared_ptr<DeviceRuntime>& runtime() const { return runtime_; }
  ClientViews& views() const { return *views_; }
  WorkQueue& queue() { return queue_; }          ///< programs
  WorkQueue& transfers() { return transfers_; }  ///< large copies to the host
  /// Cancels what runs, fails what waits, ends the thread. Later launches run in the caller.
  void close();
  /// Cancels programs launched before the last Ctrl-C, starting with the first that takes longer
  /// than `interrupts::kGrace`. False once no such program runs or waits.
  bool endInterrupted();

 private:
  DeviceDescription description_;
  const int local_id_;  // -1: a device of another process
  std::array<Memory, kNumMemories> memories_;
  const std::array<PJRT_Memory*, kNumMemories> memory_handles_;
  std::shared_ptr<DeviceRuntime> runtime_;
  const std::shared_ptr<ClientViews> views_;
  WorkQueue transfers_;
  WorkQueue queue_;
};

namespace device {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
