#include "loaded_executable.hpp"

#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "handle.hpp"

namespace ipujax::plugin {
namespace {

/// A device's queue takes this many launches; then the caller waits, so that a loop without a
/// barrier does not allocate results without end.
constexpr std::size_t kMaxQueuedLaunches = 32;

std::span<const std::int64_t> nonDonatable(const PJRT_ExecuteOptions* options) {
  if (!options || !options->non_donatable_input_indices) return {};
  return {options->non_donatable_input_indices, options->num_non_donatable_input_indices};
}

std::span<PJRT_Buffer* const> argumentsOf(const PJRT_LoadedExecutable_Execute_Args& args,
                                          std::size_t device) {
  return {args.num_args ? args.argument_lists[device] : nullptr, args.num_args};
}

void giveEvent(PJRT_LoadedExecutable_Execute_Args& args, std::size_t device, Ref<Event> done) {
  if (args.device_complete_events) {
    args.device_complete_events[device] = event::give(std::move(done));
  }
}

}  // namespace

LoadedExecutable::LoadedExecutable(Client& client, std::shared_ptr<const Program> program,
                                   DeviceAssignment assignment)
    : client_(client), program_(std::move(program)), assignment_(std::move(assignment)) {
  for (std::size_t i = 0; i < assignment_.device_ids.size(); ++i) {
    auto& device = client.deviceById(assignment_.device_ids[i]);
    if (!device.isAddressable()) continue;
    const auto partitions = static_cast<std::size_t>(assignment_.num_partitions);
    devices_.push_back(&device);
    logical_ids_.push_back({static_cast<int>(i / partitions), static_cast<int>(i % partitions)});
    replicas_.push_back(std::make_shared<Replica>(program_, device));
  }
}

std::unique_ptr<LoadedExecutable> LoadedExecutable::load(Client& client, std::string_view sealed,
                                                         std::string_view compile_options) {
  const auto& local = client.addressableDevices();
  auto assignment = readDeviceAssignment(compile_options, object<Device>(local.front()).id());
  return std::make_unique<LoadedExecutable>(client, Program::open(sealed), std::move(assignment));
}

/// Runs in this call and gives out finished results. Failures still travel in the results, as
/// they do when the program runs later.
void LoadedExecutable::executeInline(Launch& launch, PJRT_LoadedExecutable_Execute_Args& args,
                                     bool nested) {
  const auto failure = nested ? launch.runNested() : launch.runHere();
  auto done = failure ? Event::failed(failure) : Event::ready();
  launch.makeOutputs(done, args.output_lists[0]);
  giveEvent(args, 0, std::move(done));
}

void LoadedExecutable::execute(PJRT_LoadedExecutable_Execute_Args& args) {
  if (isDeleted()) {
    failInvalidArgument("[ipu execute] needs a loaded executable; got a deleted one.");
  }
  if (args.num_devices != replicas_.size()) {
    failInvalidArgument("[ipu execute] needs arguments for " + std::to_string(replicas_.size()) +
                        " devices; got them for " + std::to_string(args.num_devices) + ".");
  }
  const bool nested = WorkQueue::onWorkerThread();
  if (nested && replicas_.size() > 1) {
    throw PluginError(PJRT_Error_Code_UNIMPLEMENTED,
                      "[ipu execute] a host callback needs programs for one device; got one for " +
                          std::to_string(replicas_.size()) + ". Run it outside the callback.");
  }
  for (const auto& replica : replicas_) {
    replica->device.queue().waitUntilAtMost(kMaxQueuedLaunches);
  }
  replicas_.size() == 1 ? executeOnOne(args, nested) : executeOnAll(args);
}

void LoadedExecutable::executeOnOne(PJRT_LoadedExecutable_Execute_Args& args, bool nested) {
  auto& replica = *replicas_[0];
  auto& queue = replica.device.queue();
  Launch launch(replicas_[0]);
  std::unique_lock submit(client_.submitMutex());
  launch.take(argumentsOf(args, 0), client_.nextLaunch());
  std::unique_lock run(replica.runtime->run_mutex, std::defer_lock);
  const bool here =
      nested || (replica.isShort() && launch.inputsReady() && queue.idle() && run.try_lock());
  launch.bindOutputs(argumentsOf(args, 0), nonDonatable(args.options), !nested);
  if (here) {
    submit.unlock();
    return executeInline(launch, args, nested);
  }
  auto queued = std::make_unique<Launch>(std::move(launch));
  auto done = Event::pending();
  queued->makeOutputs(done, args.output_lists[0]);
  queued->setDone(done);
  auto refused = queue.push(std::move(queued));
  submit.unlock();
  if (refused) refused->run();
  if (replica.callsBackShortly()) done->wait();
  giveEvent(args, 0, std::move(done));
}

/// Every device's queue gets its launch under one lock, so that two calls whose programs meet in
/// collectives are in the same order everywhere.
void LoadedExecutable::executeOnAll(PJRT_LoadedExecutable_Execute_Args& args) {
  std::vector<std::unique_ptr<Launch>> launches;
  std::vector<std::unique_ptr<Task>> refused;
  std::unique_lock submit(client_.submitMutex());
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    launches.push_back(std::make_unique<Launch>(replicas_[d]));
    launches[d]->take(argumentsOf(args, d), client_.nextLaunch());
  }
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    launches[d]->bindOutputs(argumentsOf(args, d), nonDonatable(args.options), true);
    auto done = Event::pending();
    launches[d]->makeOutputs(done, args.output_lists[d]);
    launches[d]->setDone(done);
    giveEvent(args, d, std::move(done));
    refused.push_back(replicas_[d]->device.queue().push(std::move(launches[d])));
  }
  submit.unlock();
  for (const auto& task : refused) {
    if (task) task->run();
  }
}

namespace {

void destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  adopt<LoadedExecutable>(args.executable).reset();
}

void getExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  const auto& loaded = object<LoadedExecutable>(args.loaded_executable);
  args.executable = release(std::make_unique<Executable>(
      loaded.program(), loaded.assignment().num_replicas, loaded.assignment().num_partitions));
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
  const auto& text = object<LoadedExecutable>(args.executable).program()->image()->fingerprint;
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
