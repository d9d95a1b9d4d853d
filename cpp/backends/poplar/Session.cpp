#include "backends/poplar/Session.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "poplar/exceptions.hpp"
#include "runtime/DeviceError.hpp"
#include "runtime/Faults.hpp"
#include "support/FloatEnvironment.hpp"

namespace ipujax::poplar_backend {
namespace {

std::uint64_t nextId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

runtime::Recovery recoveryOf(poplar::RecoveryAction action) {
  switch (action) {
    case poplar::RecoveryAction::IPU_RESET:
      return runtime::Recovery::kIpuReset;
    case poplar::RecoveryAction::FULL_RESET:
      return runtime::Recovery::kFullReset;
    default:  // of links and partitions
      return runtime::Recovery::kPartitionReset;
  }
}

/// The error code that needs the same recovery as the fault.
poplar::ErrorCode codeOf(runtime::Fault fault) {
  switch (fault) {
    case runtime::Fault::kLinkError:
      return poplar::ErrorCode::LINK_DOWN;
    case runtime::Fault::kHostLinkTimeout:
      return poplar::ErrorCode::HOST_LINK_DOWN;
    case runtime::Fault::kEcc:
      return poplar::ErrorCode::MEMORY_ERROR;
    case runtime::Fault::kExchangeParity:
      return poplar::ErrorCode::IPUSOFTERR;
    case runtime::Fault::kPower:
      break;
  }
  return poplar::ErrorCode::IPU_MEMORY_FAILURE;
}

/// Makes the engine's next run fail if a fault is due; later runs are not affected.
class SimulatedError {
 public:
  SimulatedError(poplar::Engine& engine, const std::string& program) : engine_(engine) {
    const auto fault = runtime::Faults::shared().beginRun(program);
    if (!fault) return;
    engine_.insertSimulatedError(codeOf(*fault), poplar::ErrorLocation(0));
    is_inserted_ = true;
  }
  ~SimulatedError() {
    if (is_inserted_) engine_.clearSimulatedErrors();
  }
  SimulatedError(const SimulatedError&) = delete;
  SimulatedError& operator=(const SimulatedError&) = delete;

 private:
  poplar::Engine& engine_;
  bool is_inserted_ = false;
};

/// Transfers data when the program asks for it. Nothing is prefetched, because the arrays of the
/// next run are not known yet.
class Transfer : public poplar::StreamCallback {
 public:
  Result prefetch(void*) override { return Result::NotAvailable; }
  void complete() override {}
};

class Fetch final : public Transfer {
 public:
  Fetch(const std::span<const runtime::Arrays>& replicas, unsigned replica, std::size_t input,
        std::size_t bytes)
      : replicas_(replicas), replica_(replica), input_(input), bytes_(bytes) {}
  void fetch(void* to) override { std::memcpy(to, replicas_[replica_].inputs[input_], bytes_); }

 private:
  const std::span<const runtime::Arrays>& replicas_;
  const unsigned replica_;
  const std::size_t input_;
  const std::size_t bytes_;
};

/// Whether replicas call the host in parallel. They must, because one may wait for data that comes
/// only after another has called, such as the batches of a shared feed.
bool callsTogether(const Container& container) {
  return container.signature.num_replicas > 1 && !container.host_calls.empty();
}

/// The host answers each replica independently, because they may be at different calls.
poplar::OptionFlags engineOptions(const Container& container) {
  if (!callsTogether(container)) return {};
  return {{"target.syncReplicasIndependently", "true"}};
}

poplar::RuntimeOptions runOptions(const Container& container,
                                  const runtime::HostCallbacks* callbacks) {
  if (!callsTogether(container)) return {};
  const bool on_threads = callbacks && callbacks->takesManyThreads();
  const auto threads = std::to_string(container.signature.num_replicas);
  return poplar::RuntimeOptions(
      {{"streamCallbacks.multiThreadMode", on_threads ? "dedicated" : "singleThread"},
       {"streamCallbacks.numWorkerThreads", on_threads ? threads : "0"}});
}

/// Sends which arguments the program reads from their streams.
class FetchFresh final : public Transfer {
 public:
  explicit FetchFresh(const KeptArguments& kept) : kept_(kept) {}
  void fetch(void* to) override {
    std::memcpy(to, kept_.fresh().data(), kept_.fresh().size() * sizeof(std::int32_t));
  }

 private:
  const KeptArguments& kept_;
};

/// Sends the seed of the run, from which the tiles' generators start.
class FetchSeed final : public Transfer {
 public:
  FetchSeed(const runtime::RunSeed& seed, unsigned replica) : seed_(seed), replica_(replica) {}
  void fetch(void* to) override {
    const auto words = seed_.of(replica_);
    std::memcpy(to, words.data(), sizeof(words));
  }

 private:
  const runtime::RunSeed& seed_;
  const unsigned replica_;
};

class Give final : public Transfer {
 public:
  Give(const std::span<const runtime::Arrays>& replicas, unsigned replica, std::size_t output,
       std::size_t bytes)
      : replicas_(replicas), replica_(replica), output_(output), bytes_(bytes) {}
  void fetch(void* from) override {
    std::memcpy(replicas_[replica_].outputs[output_], from, bytes_);
  }

 private:
  const std::span<const runtime::Arrays>& replicas_;
  const unsigned replica_;
  const std::size_t output_;
  const std::size_t bytes_;
};

/// Whether the user asked for a report; only then does Poplar keep a record of each run.
bool wantsReport() {
  const char* const options = std::getenv("POPLAR_ENGINE_OPTIONS");
  return options && *options;
}

bool hasStream(const runtime::TensorSpec& spec) { return spec.dtype != "token"; }

bool isAmong(const std::vector<RemoteArray>& arrays, std::size_t index) {
  return std::ranges::find(arrays, index, &RemoteArray::index) != arrays.end();
}

}  // namespace

Session::Session(std::shared_ptr<const Program> program, const runtime::DeviceStates& devices)
    : program_(std::move(program)),
      range_(rangeOf(devices, program_->container().ipus_per_replica)),
      id_(nextId()),
      engine_(program_->takeExecutable(), engineOptions(program_->container())),
      kept_(program_->container()) {
  if (!wantsReport()) engine_.disableExecutionProfiling();
  connectStreams();
  connectHostCalls();
}

void Session::connectStreams() {
  const auto& container = program_->container();
  const auto& signature = container.signature;
  for (unsigned replica = 0; replica < signature.num_replicas; ++replica) {
    if (!container.kept_inputs.empty())
      engine_.connectStreamToCallback("fresh", replica, std::make_unique<FetchFresh>(kept_));
    if (signature.takes_seed)
      engine_.connectStreamToCallback("seed", replica, std::make_unique<FetchSeed>(seed_, replica));
    for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
      if (!hasStream(signature.inputs[i]) || isAmong(container.remote_inputs, i)) continue;
      const std::size_t bytes = signature.inputs[i].bytes;
      engine_.connectStreamToCallback("in" + std::to_string(i), replica,
                                      std::make_unique<Fetch>(replicas_, replica, i, bytes));
    }
    for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
      if (!hasStream(signature.outputs[i]) || isAmong(container.remote_outputs, i)) continue;
      const std::size_t bytes = signature.outputs[i].bytes;
      engine_.connectStreamToCallback("out" + std::to_string(i), replica,
                                      std::make_unique<Give>(replicas_, replica, i, bytes));
    }
  }
}

void Session::fillRemoteBuffers() {
  for (const auto& array : program_->container().remote_inputs) {
    const auto bytes = program_->signature().inputs[array.index].bytes / array.entries;
    for (unsigned replica = 0; replica < replicas_.size(); ++replica) {
      const auto* data = static_cast<const std::byte*>(replicas_[replica].inputs[array.index]);
      for (std::uint64_t entry = 0; entry < array.entries; ++entry)
        engine_.copyToRemoteBuffer(data + entry * bytes, array.handle, entry, replica);
    }
  }
}

void Session::readRemoteBuffers() {
  for (const auto& array : program_->container().remote_outputs) {
    const auto bytes = program_->signature().outputs[array.index].bytes / array.entries;
    for (unsigned replica = 0; replica < replicas_.size(); ++replica) {
      auto* data = static_cast<std::byte*>(replicas_[replica].outputs[array.index]);
      for (std::uint64_t entry = 0; entry < array.entries; ++entry)
        engine_.copyFromRemoteBuffer(array.handle, data + entry * bytes, entry, replica);
    }
  }
}

void Session::connectHostCalls() {
  for (const auto& each : program_->container().host_calls) {
    for (unsigned replica = 0; replica < program_->signature().num_replicas; ++replica) {
      engine_.connectHostFunction(
          each.handle, replica,
          [this, &each](poplar::ArrayRef<const void*> inputs, poplar::ArrayRef<void*> outputs) {
            call(each, inputs, outputs);
          });
    }
  }
}

/// Exceptions must not pass through Poplar, which may not catch them. Instead the program is
/// stopped; until it ends, its host calls return at once with whatever the results hold. The run
/// then throws the exception.
void Session::call(const HostCall& each, poplar::ArrayRef<const void*> inputs,
                   poplar::ArrayRef<void*> outputs) noexcept {
  try {
    {
      const std::lock_guard lock(error_mutex_);
      if (error_) return;
    }
    if (cancelled_.load())
      throw std::runtime_error(
          "[ipu execute] was cancelled: its device is closing. Wait for all programs before you "
          "exit.");
    callHost(each, inputs, outputs);
  } catch (...) {
    fail(std::current_exception());
  }
}

void Session::callHost(const HostCall& each, poplar::ArrayRef<const void*> inputs,
                       poplar::ArrayRef<void*> outputs) {
  if (!callbacks_)
    throw std::runtime_error("[ipu host callback] needs a host that takes callbacks; got none.");
  std::vector<runtime::HostArray> arguments, results;
  std::size_t next = 0;
  // Input arrays are only read, like those of a run's arguments.
  for (const auto& array : each.arguments)
    arguments.push_back(
        {array.dtype, array.shape, array.isEmpty() ? nullptr : const_cast<void*>(inputs[next++])});
  next = 0;
  for (const auto& array : each.results)
    results.push_back({array.dtype, array.shape, array.isEmpty() ? nullptr : outputs[next++]});
  callbacks_->call(each.id, arguments, results);
}

void Session::fail(const std::exception_ptr& error) noexcept {
  {
    const std::lock_guard lock(error_mutex_);
    if (error_) return;
    error_ = error;
  }
  if (callbacks_) callbacks_->failed(error);
  try {
    engine_.stop();  // it may be in a loop that only a callback's result ends
  } catch (...) {    // then it runs to its end
  }
}

void Session::run(std::span<const runtime::Arrays> replicas, runtime::HostCallbacks* callbacks,
                  const runtime::RunSeed& seed) {
  const runtime::FloatEnvironment environment;
  if (enter(engine_, id_, range_, program_->container().tiles_per_ipu)) kept_.forget();
  kept_.choose(replicas);
  replicas_ = replicas;
  callbacks_ = callbacks;
  seed_ = seed;
  std::exception_ptr error;
  try {
    const SimulatedError simulated(engine_, program_->signature().name);
    fillRemoteBuffers();
    engine_.run(0, "", runOptions(program_->container(), callbacks_));
    readRemoteBuffers();
  } catch (const poplar::recoverable_runtime_error& e) {
    error = std::make_exception_ptr(runtime::DeviceError("devices without errors", e.what(),
                                                         recoveryOf(e.getRecoveryAction())));
  } catch (const poplar::unrecoverable_runtime_error& e) {
    error = std::make_exception_ptr(
        runtime::DeviceError("devices without errors", e.what(), runtime::Recovery::kNone));
  } catch (...) {
    error = std::current_exception();
  }
  if (cancelled_.exchange(false) && !error)
    error = std::make_exception_ptr(std::runtime_error("[ipu execute] was cancelled."));
  if (error_) error = std::exchange(error_, nullptr);  // a callback's exception came first
  if (!error) return kept_.remember(replicas);
  kept_.forget();
  std::rethrow_exception(error);
}

}  // namespace ipujax::poplar_backend
