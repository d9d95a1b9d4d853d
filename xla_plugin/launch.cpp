#include "launch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <string>
#include <utility>

#include "compiler_bridge.hpp"
#include "handle.hpp"
#include "profiler.hpp"
#include "runtime/HostPorts.hpp"
#include "transfer_checks.hpp"

namespace ipujax::plugin {
namespace {

/// If devices run one program at a time, programs cannot overtake: they fail after this time, which
/// is longer than callbacks take.
std::chrono::seconds patienceOfOneProgram() {
  static const std::chrono::seconds seconds = [] {
    const char* given = std::getenv("IPUJAX_CALLBACK_TIMEOUT");
    const long number = given ? std::strtol(given, nullptr, 10) : 0;
    return std::chrono::seconds(number > 0 ? number : 120);
  }();
  return seconds;
}

[[noreturn]] void failArgument(const runtime::Signature& signature, std::size_t index,
                               const std::string& needs, const std::string& got) {
  failInvalidArgument("[ipu execute] argument " + std::to_string(index) + " of " + signature.name +
                      " needs " + needs + "; got " + got +
                      ". Call it with arrays like those it was compiled for.");
}

/// Whether a run has visible effects even if nobody asks for its results.
bool hasEffects(const runtime::Signature& signature) {
  return signature.has_host_callbacks || signature.prints;
}

/// Locks the run mutexes of all devices of a program by ascending address, so that two programs
/// that share devices never deadlock.
class RunLocks {
 public:
  explicit RunLocks(std::vector<std::shared_ptr<DeviceRuntime>> runtimes) {
    std::ranges::sort(runtimes);
    for (const auto& runtime : runtimes) locks_.emplace_back(runtime->run_mutex);
  }

 private:
  std::vector<std::unique_lock<std::mutex>> locks_;
};

FailurePtr interrupted(const runtime::Signature& signature) {
  return makeFailure(PJRT_Error_Code_CANCELLED, "[ipu execute] " + signature.name +
                                                    " needs to run to its end; got an interrupt "
                                                    "(Ctrl-C). Run it again.");
}

/// Records which session runs on the devices while this object lives.
class Running {
 public:
  Running(const Placement& placement, std::uint64_t interrupts)
      : runtimes_(placement.runtimes), run_(std::make_shared<Run>(placement.session, interrupts)) {
    set(run_);
  }
  ~Running() {
    set(nullptr);
    run_->session->forgetCancel();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool wasInterrupted() const { return run_->was_interrupted.load(); }

 private:
  void set(const std::shared_ptr<Run>& run) const {
    for (const auto& runtime : runtimes_) {
      const std::lock_guard lock(runtime->running_mutex);
      runtime->running = run;
    }
  }

  const std::vector<std::shared_ptr<DeviceRuntime>>& runtimes_;
  const std::shared_ptr<Run> run_;
};

/// The host callbacks of one launch. The first failure reaches the results at once.
class LaunchCallbacks final : public runtime::HostCallbacks {
 public:
  LaunchCallbacks(const Placement& placement, Ref<Event> done)
      : placement_(placement), done_(std::move(done)) {}

  void call(const std::string& id, std::span<const runtime::HostArray> arguments,
            std::span<const runtime::HostArray> results) override {
    std::list<WorkQueue::HostWait> waits;
    for (auto* device : placement_.devices) waits.emplace_back(device->queue());
    if (runtime::ports::names(id)) placement_.has_feeds.store(true, std::memory_order_relaxed);
    bridge::hostCallbacks().call(id, arguments, results);
  }
  bool takesManyThreads() const override { return bridge::hostCallbacks().takesManyThreads(); }
  void failed(const std::exception_ptr& error) noexcept override {
    if (!done_) return;  // the caller runs the program itself
    try {
      std::rethrow_exception(error);
    } catch (...) {
      done_->set(currentFailure());
    }
  }

 private:
  const Placement& placement_;
  const Ref<Event> done_;
};

bool contains(std::span<const Ref<Storage>> storages, const Ref<Storage>& storage) {
  return std::ranges::any_of(storages,
                             [&](const auto& each) { return each.get() == storage.get(); });
}

}  // namespace

Launch::Launch(std::shared_ptr<Placement> placement) : placement_(std::move(placement)) {
  const auto replicas = placement_->devices.size();
  inputs_.reserve(replicas * placement_->program->signature().inputs.size());
  outputs_.reserve(replicas * placement_->program->outputs().size());
  if (!placement_->program->signature().takes_seed) return;
  auto& seeds = runtime::RunSeeds::shared();
  seed_ = placement_->peers ? seeds.nextShared() : seeds.next();
}

void Launch::take(std::span<PJRT_Buffer* const> arguments, std::uint64_t number) {
  const auto& signature = placement_->program->signature();
  if (arguments.size() != signature.inputs.size()) {
    failInvalidArgument("[ipu execute] " + signature.name + " needs " +
                        std::to_string(signature.inputs.size()) + " arguments; got " +
                        std::to_string(arguments.size()) + ".");
  }
  const auto replica = arguments.empty() ? 0 : inputs_.size() / arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) takeOne(replica, arguments, i, number);
}

void Launch::requireRoom(std::size_t replica) const {
  const auto& bytes = placement_->program->newBytes();
  for (std::size_t kind = 0; kind < bytes.size(); ++kind) {
    if (bytes[kind] == 0) continue;
    placement_->devices[replica]
        ->memory(static_cast<runtime::MemoryKind>(kind))
        .requireRoom(bytes[kind]);
  }
}

void Launch::takeOne(std::size_t replica, std::span<PJRT_Buffer* const> arguments,
                     std::size_t index, std::uint64_t number) {
  const auto& signature = placement_->program->signature();
  auto& buffer = object<Buffer>(arguments[index]);
  const auto& spec = signature.inputs[index];
  auto& device = *placement_->devices[replica];
  if (&buffer.device() != &device) {
    failArgument(signature, index, "device " + device.description().toString(),
                 buffer.device().description().toString());
  }
  if (buffer.memory().kind() != spec.memory && spec.dtype != "token") {
    failArgument(signature, index, std::string("the memory kind '") + nameOf(spec.memory) + "'",
                 "'" + buffer.memory().kindName() + "'");
  }
  if (buffer.shape().bytes != spec.bytes && spec.dtype != "token") {
    failArgument(signature, index, std::to_string(spec.bytes) + " bytes of " + spec.dtype,
                 std::to_string(buffer.shape().bytes));
  }
  inputs_.push_back(buffer.storage());
  if (!buffer.ready()->isReady()) {
    waits_.push_back(buffer.ready());
  } else if (!poison_) {
    poison_ = buffer.ready()->failure();
  }
  if (buffer.last_launch == number) {
    given_twice_.resize(placement_->devices.size() * arguments.size());
    for (std::size_t j = 0; j <= index; ++j) {
      if (arguments[j] == arguments[index]) given_twice_[replica * arguments.size() + j] = true;
    }
  }
  buffer.last_launch = number;
}

void Launch::requireSingleUse(std::size_t replica, std::span<PJRT_Buffer* const> arguments,
                              std::span<const std::int64_t> non_donatable) const {
  if (given_twice_.empty()) return;
  const auto& signature = placement_->program->signature();
  for (const auto input : signature.output_alias) {
    if (input < 0 || std::ranges::find(non_donatable, input) != non_donatable.end()) continue;
    const auto index = static_cast<std::size_t>(input);
    if (!given_twice_[replica * arguments.size() + index]) continue;
    std::size_t other = 0;
    while (other == index || arguments[other] != arguments[index]) ++other;
    failInvalidArgument("[ipu execute] " + signature.name +
                        " needs donated arrays once; got that of " + "argument " +
                        std::to_string(index) + " as argument " + std::to_string(other) +
                        " too. Pass a copy of it (x.copy()).");
  }
}

void Launch::bindOutputs(std::size_t replica, std::span<PJRT_Buffer* const> arguments,
                         std::span<const std::int64_t> non_donatable, bool in_place) {
  const auto& program = *placement_->program;
  const auto& alias = program.signature().output_alias;
  auto& device = *placement_->devices[replica];
  const auto mayDonate = [&](std::size_t input) {
    return std::ranges::find(non_donatable, static_cast<std::int64_t>(input)) ==
           non_donatable.end();
  };
  const auto first = replica * arguments.size();
  for (std::size_t i = 0; i < program.outputs().size(); ++i) {
    Ref<Storage> storage;
    if (i < alias.size() && alias[i] >= 0 && mayDonate(static_cast<std::size_t>(alias[i]))) {
      const auto input = static_cast<std::size_t>(alias[i]);
      auto& buffer = object<Buffer>(arguments[input]);
      const bool taken = !buffer.isDeleted() && buffer.donate() && in_place;
      if (taken) storage = inputs_[first + input];
      auto& counters = placement_->runtimes[replica]->counters;
      (taken ? counters.donated_in_place : counters.donated_copied)
          .fetch_add(1, std::memory_order_relaxed);
    }
    if (!storage) {
      const auto& memory = device.memory(program.signature().outputs[i].memory);
      storage = makeRef<Storage>(program.outputs()[i]->bytes, memory.use());
    }
    outputs_.push_back(std::move(storage));
  }
}

void Launch::makeOutputs(std::size_t replica, const Ref<Event>& done, PJRT_Buffer** outputs) const {
  const auto& shapes = placement_->program->outputs();
  const auto& specs = placement_->program->signature().outputs;
  const auto first = replica * shapes.size();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    auto& memory = placement_->devices[replica]->memory(specs[i].memory);
    outputs[i] = release(std::make_unique<Buffer>(memory, shapes[i], outputs_[first + i], done));
  }
}

void Launch::setDone(Ref<Event> done) {
  done_ = std::move(done);
  const auto& signature = placement_->program->signature();
  if (hasEffects(signature))
    for (const auto& runtime : placement_->runtimes) runtime->queued_with_effects.fetch_add(1);
  if (signature.has_host_callbacks) holdArguments();
}

/// A later program that overtakes this one then copies a donated argument instead of updating it in
/// place. Only programs that wait for this one use the arrays that it updates in place.
void Launch::holdArguments() {
  for (const auto& storage : inputs_) {
    if (contains(outputs_, storage)) continue;
    storage->hold();
    held_.push_back(storage);
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

/// Without an attached IPU: fails, or makes all results zeros.
FailurePtr Launch::runDetached(Connection connection) const noexcept {
  if (connection == Connection::kNever) {
    return makeFailure(PJRT_Error_Code_FAILED_PRECONDITION,
                       "[ipu execute] needs IPUs to run on; got the connection \"never\", which "
                       "compiles only. Set IPUJAX_CONNECTION to always or on_demand.");
  }
  const auto& shapes = placement_->program->outputs();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::size_t bytes = shapes[i % shapes.size()]->bytes;
    if (bytes > 0) std::memset(outputs_[i]->data(), 0, bytes);
  }
  return nullptr;
}

FailurePtr Launch::runSession(runtime::Session& session) noexcept {
  if (auto failure = awaitInputs()) return failure;
  const auto connection = placement_->runtimes.front()->connection;
  if (connection != Connection::kAttached) return runDetached(connection);
  if (auto failure = checkArrivals()) return failure;
  try {
    const auto replicas = placement_->devices.size();
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    inputs.reserve(inputs_.size());
    outputs.reserve(outputs_.size());
    for (const auto& storage : inputs_) inputs.push_back(storage->data());
    for (const auto& storage : outputs_) outputs.push_back(storage->data());
    const auto num_inputs = inputs.size() / replicas;
    const auto num_outputs = outputs.size() / replicas;
    std::vector<std::uint64_t> given, made;
    if (session.tellsContents()) numberContents(given, made);
    std::vector<runtime::Arrays> arrays;
    arrays.reserve(replicas);
    for (std::size_t r = 0; r < replicas; ++r) {
      auto& own =
          arrays.emplace_back(runtime::Arrays{{inputs.data() + r * num_inputs, num_inputs},
                                              {outputs.data() + r * num_outputs, num_outputs}});
      if (!session.tellsContents()) continue;
      own.input_contents = {given.data() + r * num_inputs, num_inputs};
      own.output_contents = {made.data() + r * num_outputs, num_outputs};
    }
    const bool is_traced = RunRecorder::shared().isOn();
    const std::int64_t begin = is_traced ? RunRecorder::now() : 0;
    const auto start = std::chrono::steady_clock::now();
    LaunchCallbacks callbacks(*placement_, done_);
    session.run(arrays, &callbacks, seed_);
    const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - start;
    placement_->timed(took.count());
    if (is_traced) record(begin);
    for (const auto& storage : outputs_) storage->seal(transfer_checks::isOn());
    return nullptr;
  } catch (...) {
    return currentFailure();
  }
}

/// Checks arguments that the host put on the devices and no program has taken yet.
FailurePtr Launch::checkArrivals() const noexcept {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]->takeArrival() || inputs_[i]->isIntact()) continue;
    const auto& signature = placement_->program->signature();
    return makeFailure(PJRT_Error_Code_DATA_LOSS,
                       "[ipu transfer] needs arrays that arrive as they were sent; got other bytes "
                       "of argument " +
                           std::to_string(i % signature.inputs.size()) + " of " + signature.name +
                           ". Put the array on the device again, and write to no NumPy array that "
                           "was put there.");
  }
  return nullptr;
}

/// An array updated in place has one number as an argument and another as a result.
void Launch::numberContents(std::vector<std::uint64_t>& given,
                            std::vector<std::uint64_t>& made) const {
  for (const auto& storage : inputs_) given.push_back(storage->contents());
  for (const auto& storage : outputs_) storage->renewContents();
  for (const auto& storage : outputs_) made.push_back(storage->contents());
}

void Launch::record(std::int64_t begin) const {
  std::vector<int> ids;
  for (const Device* device : placement_->devices) ids.push_back(device->id());
  const std::int64_t took = RunRecorder::now() - begin;
  RunRecorder::shared().add({placement_->program, std::move(ids), begin, took});
}

FailurePtr Launch::runHere() noexcept {
  for (const auto& runtime : placement_->runtimes)
    runtime->counters.inline_runs.fetch_add(1, std::memory_order_relaxed);
  return runSession(*placement_->session);
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
    for (const auto& runtime : placement_->runtimes)
      runtime->counters.nested_runs.fetch_add(1, std::memory_order_relaxed);
    return runSession(*placement_->program->compiled().openNested());
  } catch (const runtime::NotSupportedError&) {
    return runElsewhere();
  } catch (...) {
    return currentFailure();
  }
}

/// For devices that run one program at a time: runs if no program holds them. It waits for no
/// device, so two callbacks never wait for each other. Called while openNested's error is handled.
FailurePtr Launch::runElsewhere() {
  const auto locks = placement_->tryLockOthers();
  if (locks.empty()) return currentFailure();
  const Running running(*placement_, interrupts_);
  return runSession(*placement_->session);
}

void Launch::run() noexcept {
  const auto& runtimes = placement_->runtimes;
  for (const auto& runtime : runtimes)
    runtime->counters.queued_runs.fetch_add(1, std::memory_order_relaxed);
  finish(runInTurn());
}

FailurePtr Launch::runInTurn() noexcept {
  const auto& runtimes = placement_->runtimes;
  const auto& signature = placement_->program->signature();
  const auto fails = [&](const auto& r) { return interrupts_ < r->interrupts_obeyed.load(); };
  FailurePtr failure = awaitInputs();
  if (turn_) placement_->peers->channel().enterTurn(*turn_);
  if (!failure && std::ranges::any_of(runtimes, fails)) failure = interrupted(signature);
  if (!failure) {
    const RunLocks locks(runtimes);
    const Running running(*placement_, interrupts_);
    failure = runSession(*placement_->session);
    if (failure && running.wasInterrupted()) {
      failure = interrupted(signature);
    } else if (failure && interrupts_ < runtime::interrupts::count()) {
      failure = makeFailure(PJRT_Error_Code_CANCELLED, failure->message);
    }
  }
  return failure;
}

void Launch::takeTurn() {
  if (placement_->peers) turn_ = placement_->peers->channel().takeTurn();
}

/// Other processes wait for a program that failed here, perhaps before it began.
void Launch::endTurn(const FailurePtr& failure) noexcept {
  if (!turn_) return;
  if (failure) placement_->peers->fail(failure->message);
  placement_->peers->channel().endTurn(*turn_);
}

bool Launch::mayOvertake() const {
  return !placement_->peers &&
         std::ranges::all_of(waits_, [](const auto& event) { return event->isReady(); });
}

std::chrono::milliseconds Launch::patience() const {
  return placement_->program->compiled().nests() ? kPatience : patienceOfOneProgram();
}

void Launch::runAside() noexcept {
  if (placement_->program->compiled().nests()) return finish(runNested());
  finish(makeFailure(PJRT_Error_Code_FAILED_PRECONDITION,
                     "[ipu execute] needs devices that are free; got one whose program has waited "
                     "for a host callback for " +
                         std::to_string(patienceOfOneProgram().count()) +
                         " seconds. Let callbacks wait for no program on their own devices, or set "
                         "IPUJAX_CALLBACK_TIMEOUT to more seconds."));
}

void Launch::fail(const FailurePtr& failure) noexcept { finish(failure); }

/// Frees the arguments first, so that code that waits for the results sees their memory freed.
void Launch::finish(const FailurePtr& failure) noexcept {
  endTurn(failure);
  for (const auto& storage : held_) storage->unhold();
  held_.clear();
  inputs_.clear();
  outputs_.clear();
  if (hasEffects(placement_->program->signature()))
    for (const auto& runtime : placement_->runtimes) runtime->queued_with_effects.fetch_sub(1);
  const auto done = std::move(done_);
  done->set(failure);
}

}  // namespace ipujax::plugin
