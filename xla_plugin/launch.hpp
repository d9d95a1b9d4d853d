#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "executable.hpp"
#include "work_queue.hpp"

namespace ipujax::plugin {

/// One program made ready on one device, and how long it takes there. Shared with its launches.
struct Replica {
  Replica(std::shared_ptr<const Program> program, Device& device);

  const std::shared_ptr<const Program> program;
  Device& device;
  const std::shared_ptr<DeviceRuntime> runtime;
  const std::shared_ptr<engine::Session> session;
  std::atomic<float> microseconds{-1};  ///< what a run takes; negative until the first
  std::atomic<float> last_microseconds{-1};

  bool isShort() const;
  /// Worth waiting for: what its callbacks print or record is there when the call returns, as users
  /// of JAX's CPU backend are used to.
  bool callsBackShortly() const;
  void timed(float us);
};

/// One run of a replica. Built under the client's submit mutex; run once, in the caller or on the
/// device's thread; keeps its arguments' memory until then.
class Launch final : public Task {
 public:
  explicit Launch(std::shared_ptr<Replica> replica);

  /// Checks and takes the arguments; throws before anything was donated.
  void take(std::span<PJRT_Buffer* const> arguments, std::uint64_t number);
  /// Deletes the donated arguments and finds each output its memory. `in_place` may be false for
  /// a run that overtakes what is queued.
  void bindOutputs(std::span<PJRT_Buffer* const> arguments,
                   std::span<const std::int64_t> non_donatable, bool in_place);
  bool inputsReady() const { return waits_.empty(); }
  /// Makes the output buffers, ready when `done` is.
  void makeOutputs(const Ref<Event>& done, PJRT_Buffer** outputs) const;
  /// Sets the event on which `run` and `fail` report; for launches that go to the queue.
  void setDone(Ref<Event> done);

  void run() noexcept override;
  void fail(const FailurePtr& failure) noexcept override;
  /// Runs while the caller holds the device's run mutex.
  FailurePtr runHere() noexcept;
  /// Runs inside a host callback of the same device, whose scratch memory is in use.
  FailurePtr runNested() noexcept;

 private:
  FailurePtr awaitInputs() const;
  FailurePtr runSession(engine::Session& session) noexcept;
  void finish(const FailurePtr& failure) noexcept;

  std::shared_ptr<Replica> replica_;
  std::vector<Ref<Storage>> inputs_;
  std::vector<Ref<Storage>> outputs_;
  std::vector<Ref<Event>> waits_;  // inputs that were not ready
  std::vector<bool> given_twice_;  // arguments that came more than once; empty if none did
  FailurePtr poison_;              // of an input that had failed
  Ref<Event> done_;
};

}  // namespace ipujax::plugin
