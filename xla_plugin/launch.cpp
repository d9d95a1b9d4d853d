#include "launch.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "compiler_bridge.hpp"
#include "handle.hpp"

namespace ipujax::plugin {
namespace {

/// A hand-over to the device's thread costs a few microseconds; up to some tens of them the caller
/// is served sooner by running the program itself.
constexpr float kShortMicroseconds = 100;

/// What a caller waits for host callbacks: printing takes less, a training step with I/O more.
constexpr float kShortCallbackMicroseconds = 5000;

[[noreturn]] void failArgument(const engine::Signature& signature, std::size_t index,
                               const std::string& needs, const std::string& got) {
  failInvalidArgument("[ipu execute] argument " + std::to_string(index) + " of " + signature.name +
                      " needs " + needs + "; got " + got +
                      ". Call it with arrays like those it was compiled for.");
}

}  // namespace

Replica::Replica(std::shared_ptr<const Program> the_program, Device& the_device)
    : program(std::move(the_program)),
      device(the_device),
      runtime(the_device.runtime()),
      session(std::make_shared<engine::Session>(program->image(), runtime->scratch)) {}

bool Replica::isShort() const {
  if (program->signature().has_host_callbacks) return false;
  const float late = microseconds.load(std::memory_order_relaxed);
  return late < 0 ? program->looksShort() : late <= kShortMicroseconds;
}

bool Replica::callsBackShortly() const {
  return program->signature().has_host_callbacks && program->looksShort() &&
         microseconds.load(std::memory_order_relaxed) <= kShortCallbackMicroseconds;
}

/// The shorter of the last two runs counts, so that one hiccup of the host changes nothing.
void Replica::timed(float us) {
  const float last = last_microseconds.exchange(us, std::memory_order_relaxed);
  microseconds.store(last < 0 ? us : std::min(us, last), std::memory_order_relaxed);
}

Launch::Launch(std::shared_ptr<Replica> replica) : replica_(std::move(replica)) {}

void Launch::take(std::span<PJRT_Buffer* const> arguments, std::uint64_t number) {
  const auto& signature = replica_->program->signature();
  if (arguments.size() != signature.inputs.size()) {
    failInvalidArgument("[ipu execute] " + signature.name + " needs " +
                        std::to_string(signature.inputs.size()) + " arguments; got " +
                        std::to_string(arguments.size()) + ".");
  }
  inputs_.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& buffer = object<Buffer>(arguments[i]);
    const auto& spec = signature.inputs[i];
    if (&buffer.device() != &replica_->device) {
      failArgument(signature, i, "device " + replica_->device.description().toString(),
                   buffer.device().description().toString());
    }
    if (buffer.shape().bytes != spec.bytes && spec.dtype != "token") {
      failArgument(signature, i, std::to_string(spec.bytes) + " bytes of " + spec.dtype,
                   std::to_string(buffer.shape().bytes));
    }
    inputs_.push_back(buffer.storage());
    if (!buffer.ready()->isReady()) {
      waits_.push_back(buffer.ready());
    } else if (!poison_) {
      poison_ = buffer.ready()->failure();
    }
    if (buffer.last_launch == number) {
      given_twice_.resize(arguments.size());
      for (std::size_t j = 0; j <= i; ++j) {
        if (arguments[j] == arguments[i]) given_twice_[j] = true;
      }
    }
    buffer.last_launch = number;
  }
}

void Launch::bindOutputs(std::span<PJRT_Buffer* const> arguments,
                         std::span<const std::int64_t> non_donatable, bool in_place) {
  const auto& program = *replica_->program;
  const auto& alias = program.signature().output_alias;
  const auto mayDonate = [&](std::size_t input) {
    return std::ranges::find(non_donatable, static_cast<std::int64_t>(input)) ==
           non_donatable.end();
  };
  const auto count = program.outputs().size();
  outputs_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Ref<Storage> storage;
    if (i < alias.size() && alias[i] >= 0 && mayDonate(static_cast<std::size_t>(alias[i]))) {
      const auto input = static_cast<std::size_t>(alias[i]);
      auto& buffer = object<Buffer>(arguments[input]);
      // Given twice, the array is both input and output: the other use must not see it change.
      const bool twice = !given_twice_.empty() && given_twice_[input];
      const bool taken = !buffer.isDeleted() && buffer.donate() && !twice && in_place;
      if (taken) storage = inputs_[input];
      auto& counters = replica_->runtime->counters;
      (taken ? counters.donated_in_place : counters.donated_copied)
          .fetch_add(1, std::memory_order_relaxed);
    }
    if (!storage) storage = makeRef<Storage>(program.outputs()[i]->bytes, replica_->runtime->use);
    outputs_.push_back(std::move(storage));
  }
}

void Launch::makeOutputs(const Ref<Event>& done, PJRT_Buffer** outputs) const {
  const auto& shapes = replica_->program->outputs();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    outputs[i] = release(std::make_unique<Buffer>(replica_->device, shapes[i], outputs_[i], done));
  }
}

void Launch::setDone(Ref<Event> done) {
  done_ = std::move(done);
  if (replica_->program->signature().has_host_callbacks) {
    replica_->runtime->queued_with_callbacks.fetch_add(1);
  }
}

FailurePtr Launch::awaitInputs() const {
  if (poison_) return poison_;
  for (const auto& event : waits_) {
    event->wait();
    if (auto failure = event->failure()) return failure;
  }
  return nullptr;
}

FailurePtr Launch::runSession(engine::Session& session) noexcept {
  if (auto failure = awaitInputs()) return failure;
  try {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    inputs.reserve(inputs_.size());
    outputs.reserve(outputs_.size());
    for (const auto& storage : inputs_) inputs.push_back(storage->data());
    for (const auto& storage : outputs_) outputs.push_back(storage->data());
    const auto start = std::chrono::steady_clock::now();
    session.run(inputs, outputs, &bridge::hostCallbacks());
    const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - start;
    replica_->timed(took.count());
    return nullptr;
  } catch (...) {
    return currentFailure();
  }
}

FailurePtr Launch::runHere() noexcept {
  auto& runtime = *replica_->runtime;
  runtime.counters.inline_runs.fetch_add(1, std::memory_order_relaxed);
  return runSession(*replica_->session);
}

FailurePtr Launch::runNested() noexcept {
  const bool behind =
      std::ranges::any_of(waits_, [](const auto& event) { return !event->isReady(); });
  if (behind) {
    return makeFailure(PJRT_Error_Code_FAILED_PRECONDITION,
                       "[ipu execute] a host callback needs arrays that are ready; got one whose "
                       "program waits for the callback to end. Compute it before.");
  }
  try {
    replica_->runtime->counters.nested_runs.fetch_add(1, std::memory_order_relaxed);
    engine::Session session(replica_->program->image(), std::make_shared<engine::DeviceMemory>());
    return runSession(session);
  } catch (...) {
    return currentFailure();
  }
}

void Launch::run() noexcept {
  auto& runtime = *replica_->runtime;
  runtime.counters.queued_runs.fetch_add(1, std::memory_order_relaxed);
  FailurePtr failure = awaitInputs();
  if (!failure) {
    const std::lock_guard lock(runtime.run_mutex);
    {
      const std::lock_guard running(runtime.running_mutex);
      runtime.running = replica_->session;
    }
    failure = runSession(*replica_->session);
    const std::lock_guard running(runtime.running_mutex);
    runtime.running.reset();
  }
  finish(failure);
}

void Launch::fail(const FailurePtr& failure) noexcept { finish(failure); }

/// Lets go of the arguments first: who waits for the results sees their memory freed.
void Launch::finish(const FailurePtr& failure) noexcept {
  inputs_.clear();
  outputs_.clear();
  if (replica_->program->signature().has_host_callbacks) {
    replica_->runtime->queued_with_callbacks.fetch_sub(1);
  }
  const auto done = std::move(done_);
  done->set(failure);
}

}  // namespace ipujax::plugin
