#include "loaded_executable.hpp"

#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "handle.hpp"
#include "tickets.hpp"

namespace ipujax::plugin {
namespace {

/// A device's queue takes this many launches; then the caller waits, so that a loop without a
/// barrier does not allocate results without limit.
constexpr std::size_t kMaxQueuedLaunches = 32;

std::span<const std::int64_t> nonDonatable(const PJRT_ExecuteOptions* options) {
  if (!options || !options->non_donatable_input_indices) return {};
  return {options->non_donatable_input_indices, options->num_non_donatable_input_indices};
}

/// The words in which a target differs from another one.
std::string differing(const std::string& target, const std::string& other) {
  std::istringstream words(target);
  std::istringstream others(other);
  std::string found;
  std::string theirs;
  for (std::string word; words >> word;) {
    if (others >> theirs && word == theirs) continue;
    found += (found.empty() ? "" : " ") + word;
  }
  return found;
}

[[noreturn]] void failInCallback(const std::string& program) {
  throw PluginError(PJRT_Error_Code_FAILED_PRECONDITION,
                    "[ipu execute] needs programs over several processes to be called outside of "
                    "host callbacks, so that all processes call them in the same order; got a call "
                    "of " +
                        program + " in a callback. Use jax.local_devices() there, or NumPy.");
}

std::span<PJRT_Buffer* const> argumentsOf(const PJRT_LoadedExecutable_Execute_Args& args,
                                          std::size_t device) {
  return {args.num_args ? args.argument_lists[device] : nullptr, args.num_args};
}

}  // namespace

LoadedExecutable::LoadedExecutable(Client& client, std::shared_ptr<const Program> program,
                                   DeviceAssignment assignment, const std::string& made_for)
    : client_(client),
      program_(std::move(program)),
      assignment_(std::move(assignment)),
      target_(client.config().ofDevices(assignment_.device_ids).target()) {
  const auto& ids = assignment_.device_ids;
  if (ids.size() != program_->signature().num_replicas) {
    failInvalidArgument("[ipu load] " + program_->signature().name + " needs " +
                        std::to_string(program_->signature().num_replicas) + " devices; got " +
                        std::to_string(ids.size()) + ".");
  }
  if (!made_for.empty() && made_for != target_) {
    failInvalidArgument("[ipu load] " + program_->signature().name + " needs devices with " +
                        differing(made_for, target_) + "; got devices with " +
                        differing(target_, made_for) +
                        ". Compile it for these, or set the machine's options to the program's.");
  }
  std::vector<Device*> devices;
  std::vector<std::uint32_t> hosts;
  const auto partitions = static_cast<std::size_t>(assignment_.num_partitions);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto& device = client.deviceById(ids[i]);
    hosts.push_back(static_cast<std::uint32_t>(device.description().processIndex()));
    if (!device.isAddressable()) continue;
    devices.push_back(&device);
    devices_.push_back(&device);
    logical_ids_.push_back({static_cast<int>(i / partitions), static_cast<int>(i % partitions)});
  }
  placement_ = std::make_shared<Placement>(program_, std::move(devices), peersOf(hosts));
}

/// Null where the program runs in this process alone, or not at all.
std::shared_ptr<hosts::ProgramPeers> LoadedExecutable::peersOf(
    const std::vector<std::uint32_t>& hosts) const {
  if (devices_.size() == hosts.size() || devices_.empty()) return nullptr;
  return std::make_shared<hosts::ProgramPeers>(client_.channel(), hosts, program_->signature().name,
                                               program_->compiled().meaning());
}

std::unique_ptr<LoadedExecutable> LoadedExecutable::load(Client& client, std::string_view sealed,
                                                         std::string_view compile_options) {
  auto program = Program::open(sealed);
  auto ids = program->signature().device_ids;
  if (ids.empty()) ids = {object<Device>(client.addressableDevices().front()).id()};
  auto assignment = readDeviceAssignment(compile_options, ids);
  const auto& made_for = program->signature().target;
  return std::make_unique<LoadedExecutable>(client, program, std::move(assignment), made_for);
}

/// Runs in this call and gives out finished results. Failures still travel in the results, as
/// they do when the program runs later.
void LoadedExecutable::executeInline(Launch& launch, PJRT_LoadedExecutable_Execute_Args& args,
                                     bool nested) {
  const auto failure = nested ? launch.runNested() : launch.runHere();
  giveResults(launch, failure ? Event::failed(failure) : Event::ready(), args);
}

void LoadedExecutable::giveResults(const Launch& launch, const Ref<Event>& done,
                                   PJRT_LoadedExecutable_Execute_Args& args) const {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    launch.makeOutputs(d, done, args.output_lists[d]);
    if (args.device_complete_events) args.device_complete_events[d] = event::give(done);
  }
}

/// Frees the results of a failed call, which jaxlib does not own.
void LoadedExecutable::takeResultsBack(PJRT_LoadedExecutable_Execute_Args& args) const {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    for (std::size_t i = 0; i < program_->outputs().size(); ++i)
      adopt<Buffer>(args.output_lists[d][i]).reset();
    if (args.device_complete_events) event::takeBack(args.device_complete_events[d]);
  }
}

/// Pushes the launch to every device's queue under one lock, so that programs on the same devices
/// have the same order everywhere.
void LoadedExecutable::execute(PJRT_LoadedExecutable_Execute_Args& args) {
  if (isDeleted()) {
    failInvalidArgument("[ipu execute] needs a loaded executable; got a deleted one.");
  }
  auto& placement = *placement_;
  const auto num_devices = placement.devices.size();
  if (num_devices == 0) return;  // all its devices are those of other processes
  if (args.num_devices != num_devices) {
    failInvalidArgument("[ipu execute] needs arguments for " + std::to_string(num_devices) +
                        " devices; got them for " + std::to_string(args.num_devices) + ".");
  }
  const bool nested = WorkQueue::onWorkerThread();
  if (nested && placement.peers) failInCallback(program_->signature().name);
  Launch launch(placement_);  // made first: an interrupt during the wait cancels it
  for (auto* device : placement.devices) device->queue().waitUntilAtMost(kMaxQueuedLaunches);

  std::unique_lock submit(client_.submitMutex());
  const auto number = client_.nextLaunch();
  for (std::size_t d = 0; d < num_devices; ++d) launch.take(argumentsOf(args, d), number);
  for (std::size_t d = 0; d < num_devices; ++d) {
    launch.requireSingleUse(d, argumentsOf(args, d), nonDonatable(args.options));
    launch.requireRoom(d);
  }
  std::vector<std::unique_lock<std::mutex>> locks;
  if (!nested && placement.isShort() && launch.inputsReady() && placement.idle()) {
    locks = placement.tryLockAll();
  }
  for (std::size_t d = 0; d < num_devices; ++d)
    launch.bindOutputs(d, argumentsOf(args, d), nonDonatable(args.options), !nested);
  if (nested || !locks.empty()) {
    submit.unlock();
    return executeInline(launch, args, nested);
  }
  const auto done = Event::pending();
  giveResults(launch, done, args);
  auto queued = std::make_unique<Launch>(std::move(launch));
  queued->takeTurn();
  queued->setDone(done);
  auto tickets = ticketsFor(std::move(queued), num_devices);
  std::vector<std::unique_ptr<Task>> refused;
  for (std::size_t d = 0; d < num_devices; ++d) {
    auto back = placement.devices[d]->queue().push(std::move(tickets[d]));
    if (back) refused.push_back(std::move(back));
  }
  submit.unlock();
  runRefused(std::move(refused));
  if (!placement.callsBackShortly()) return;
  placement.awaitCallbacks(*done, client_.addressableDevices());
  // After Ctrl-C the error stays in the results: raised here, it would precede KeyboardInterrupt.
  const auto failure = done->failure();
  if (failure && failure->code != PJRT_Error_Code_CANCELLED) {
    takeResultsBack(args);
    throw PluginError(failure);
  }
}

namespace {

void destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  adopt<LoadedExecutable>(args.executable).reset();
}

void getExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  const auto& loaded = object<LoadedExecutable>(args.loaded_executable);
  args.executable =
      release(std::make_unique<Executable>(loaded.program(), loaded.assignment(), loaded.target()));
}

void addressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  const auto& devices = object<LoadedExecutable>(args.executable).devices();
  args.addressable_devices = devices.data();
  args.num_addressable_devices = devices.size();
}

void logicalIds(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  auto& ids = object<LoadedExecutable>(args.executable).logicalIds();
  args.addressable_device_logical_ids = ids.data();
  args.num_addressable_device_logical_ids = ids.size();
}

struct SerialisedAssignment final : PJRT_DeviceAssignmentSerialized {
  std::string bytes;
};

void destroyAssignment(PJRT_DeviceAssignmentSerialized* assignment) {
  adopt<SerialisedAssignment>(assignment).reset();
}

void getDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  auto serialised = std::make_unique<SerialisedAssignment>();
  serialised->bytes = object<LoadedExecutable>(args.executable).assignment().serialise();
  args.serialized_bytes = serialised->bytes.data();
  args.serialized_bytes_size = serialised->bytes.size();
  args.serialized_device_assignment = release(std::move(serialised));
  args.serialized_device_assignment_deleter = destroyAssignment;
}

void deleteEntry(PJRT_LoadedExecutable_Delete_Args& args) {
  object<LoadedExecutable>(args.executable).markDeleted();
}

void isDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = object<LoadedExecutable>(args.executable).isDeleted();
}

void execute(PJRT_LoadedExecutable_Execute_Args& args) {
  object<LoadedExecutable>(args.executable).execute(args);
}

void fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  const auto& text = object<LoadedExecutable>(args.executable).program()->compiled().fingerprint();
  args.executable_fingerprint = text.data();
  args.executable_fingerprint_size = text.size();
}

}  // namespace

void loaded_executable::bind(PJRT_Api& api) {
  api.PJRT_LoadedExecutable_Destroy = guarded<destroy>;
  api.PJRT_LoadedExecutable_GetExecutable = guarded<getExecutable>;
  api.PJRT_LoadedExecutable_AddressableDevices = guarded<addressableDevices>;
  api.PJRT_LoadedExecutable_AddressableDeviceLogicalIds = guarded<logicalIds>;
  api.PJRT_LoadedExecutable_GetDeviceAssignment = guarded<getDeviceAssignment>;
  api.PJRT_LoadedExecutable_Delete = guarded<deleteEntry>;
  api.PJRT_LoadedExecutable_IsDeleted = guarded<isDeleted>;
  api.PJRT_LoadedExecutable_Execute = guarded<execute>;
  api.PJRT_LoadedExecutable_Fingerprint = guarded<fingerprint>;
}

}  // namespace ipujax::plugin
