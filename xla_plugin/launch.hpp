#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "placement.hpp"
#include "support/Interrupts.hpp"
#include "work_queue.hpp"

namespace ipujax::plugin {

/// One run of a program. Built under the client's submit mutex; run once, in the caller or on a
/// device's thread; keeps its arguments' memory until then.
class Launch final : public Task {
 public:
  explicit Launch(std::shared_ptr<Placement> placement);

  /// Checks and takes the arguments of the next replica; throws before anything was donated.
  void take(std::span<PJRT_Buffer* const> arguments, std::uint64_t number);
  /// Throws if the memories of a replica's device cannot hold its results.
  void requireRoom(std::size_t replica) const;
  /// Throws if an array that would be donated is also another argument of the replica.
  void requireSingleUse(std::size_t replica, std::span<PJRT_Buffer* const> arguments,
                        std::span<const std::int64_t> non_donatable) const;
  /// Deletes a replica's donated arguments and finds memory for each output. `in_place` is false
  /// for a run that overtakes queued ones.
  void bindOutputs(std::size_t replica, std::span<PJRT_Buffer* const> arguments,
                   std::span<const std::int64_t> non_donatable, bool in_place);
  bool inputsReady() const { return waits_.empty(); }  ///< when they were taken
  /// Makes a replica's output buffers, ready when `done` is.
  void makeOutputs(std::size_t replica, const Ref<Event>& done, PJRT_Buffer** outputs) const;
  /// For launches that go to the queues: a place in the order of programs over several processes,
  /// if this is one.
  void takeTurn();
  /// Sets the event on which `run` and `fail` report; for launches that go to the queues.
  void setDone(Ref<Event> done);

  void run() noexcept override;
  void fail(const FailurePtr& failure) noexcept override;
  /// A launch whose arguments are ready may overtake a program whose callback may wait for it.
  bool mayOvertake() const override;
  std::chrono::milliseconds patience() const override;
  void runAside() noexcept override;
  /// Runs while the caller holds the devices' run mutexes.
  FailurePtr runHere() noexcept;
  /// Runs inside a host callback on a device whose scratch memory is in use.
  FailurePtr runNested() noexcept;

 private:
  /// Holds the arguments until the program has run, so that programs that overtake it while it
  /// waits for the host do not write to them.
  void holdArguments();
  void takeOne(std::size_t replica, std::span<PJRT_Buffer* const> arguments, std::size_t index,
               std::uint64_t number);
  FailurePtr awaitInputs() const;
  FailurePtr runElsewhere();
  FailurePtr runInTurn() noexcept;
  void endTurn(const FailurePtr& failure) noexcept;
  FailurePtr runSession(runtime::Session& session) noexcept;
  FailurePtr runDetached(Connection connection) const noexcept;
  FailurePtr checkArrivals() const noexcept;
  void numberContents(std::vector<std::uint64_t>& given, std::vector<std::uint64_t>& made) const;
  void record(std::int64_t begin) const;  ///< for a trace; nanoseconds since 1970
  void finish(const FailurePtr& failure) noexcept;

  std::shared_ptr<Placement> placement_;
  const std::uint64_t interrupts_ = runtime::interrupts::number();  ///< before it was launched
  runtime::RunSeed seed_;              // by order of calls, not of runs
  std::vector<Ref<Storage>> inputs_;   // replica by replica
  std::vector<Ref<Storage>> outputs_;  // replica by replica
  std::vector<Ref<Storage>> held_;     // some of inputs_
  std::vector<Ref<Event>> waits_;      // inputs that were not ready
  std::vector<bool> given_twice_;      // inputs passed more than once; empty if there are none
  FailurePtr poison_;                  // the failure of an input
  Ref<Event> done_;
  std::optional<std::uint64_t> turn_;  // in the channel to other processes
};

}  // namespace ipujax::plugin
