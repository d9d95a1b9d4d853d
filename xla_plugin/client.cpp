#include "client.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "compilation.hpp"
#include "compiler_bridge.hpp"
#include "executable.hpp"
#include "handle.hpp"
#include "loaded_executable.hpp"
#include "processes.hpp"

namespace ipujax::plugin {
namespace {

Device& deviceOf(PJRT_Device* handle) { return object<Device>(handle); }

}  // namespace

Client::Client(PlatformConfig config, std::shared_ptr<hosts::Channel> channel)
    : config_(std::move(config)),
      topology_(config_),
      channel_(std::move(channel)),
      devices_(std::make_shared<DeviceSet>()) {
  for (int id = 0; id < config_.numDevices(); ++id) {
    const auto index = config_.indexOf(id);
    const bool local = static_cast<std::int64_t>(index.node) == config_.node_id;
    auto& device = *devices_->all.emplace_back(std::make_unique<Device>(
        id, static_cast<int>(index.node), local ? static_cast<int>(index.local) : -1,
        config_.ofDevice(index), devices_->views));
    handles_.push_back(&device);
    if (!local) continue;
    devices_->local.push_back(&device);
    addressable_.push_back(&device);
    memories_.insert(memories_.end(), device.memories().begin(), device.memories().end());
  }
  DeviceSet::add(devices_);
}

Client::~Client() {
  DeviceSet::remove(devices_);
  // Python's garbage collector may free the last array while a callback needs the GIL.
  bridge::withoutGil([this] { devices_->close(); });
}

const std::shared_ptr<hosts::Channel>& Client::channel() const {
  if (!channel_) processes::failWithoutChannel();
  return channel_;
}

Device& Client::deviceById(int id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= handles_.size()) {
    failInvalidArgument("[ipu client] needs a device id below " + std::to_string(handles_.size()) +
                        "; got " + std::to_string(id) +
                        ". Set the number of devices with JAX_IPU_DEVICE_COUNT.");
  }
  return deviceOf(handles_[static_cast<std::size_t>(id)]);
}

Device& Client::deviceByLocalId(int id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= addressable_.size()) {
    failInvalidArgument("[ipu client] needs a local device id below " +
                        std::to_string(addressable_.size()) + "; got " + std::to_string(id) + ".");
  }
  return deviceOf(addressable_[static_cast<std::size_t>(id)]);
}

namespace {

void create(PJRT_Client_Create_Args& args) {
  auto config = PlatformConfig::fromOptions(readNamedValues(args.create_options, args.num_options));
  auto channel = processes::meet(args, config);
  args.client = release(std::make_unique<Client>(std::move(config), std::move(channel)));
}

void destroy(PJRT_Client_Destroy_Args& args) { adopt<Client>(args.client).reset(); }

void platformName(PJRT_Client_PlatformName_Args& args) {
  args.platform_name = kPlatformName.data();
  args.platform_name_size = kPlatformName.size();
}

void platformVersion(PJRT_Client_PlatformVersion_Args& args) {
  const auto& version = object<Client>(args.client).version();
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void processIndex(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = static_cast<int>(object<Client>(args.client).config().node_id);
}

void topologyDescription(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &object<Client>(args.client).topology();
}

void devices(PJRT_Client_Devices_Args& args) {
  const auto& all = object<Client>(args.client).devices();
  args.devices = all.data();
  args.num_devices = all.size();
}

void addressableDevices(PJRT_Client_AddressableDevices_Args& args) {
  const auto& all = object<Client>(args.client).addressableDevices();
  args.addressable_devices = all.data();
  args.num_addressable_devices = all.size();
}

void addressableMemories(PJRT_Client_AddressableMemories_Args& args) {
  const auto& all = object<Client>(args.client).addressableMemories();
  args.addressable_memories = all.data();
  args.num_addressable_memories = all.size();
}

void lookupDevice(PJRT_Client_LookupDevice_Args& args) {
  args.device = &object<Client>(args.client).deviceById(args.id);
}

void lookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  args.addressable_device = &object<Client>(args.client).deviceByLocalId(args.local_hardware_id);
}

void updateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args&) {}  // nothing depends on it

void defaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const auto& all = object<Client>(args.client).devices();
  const auto count = static_cast<std::size_t>(args.num_replicas * args.num_partitions);
  if (count > all.size() || count > args.default_assignment_size) {
    failInvalidArgument("[ipu client] needs at most " + std::to_string(all.size()) +
                        " devices; got a program for " + std::to_string(count) +
                        ". Set the number of devices with JAX_IPU_DEVICE_COUNT.");
  }
  for (std::size_t i = 0; i < count; ++i) {
    args.default_assignment[i] = deviceOf(all[i]).id();
  }
}

void compile(PJRT_Client_Compile_Args& args) {
  auto& client = object<Client>(args.client);
  const std::int32_t first[] = {object<Device>(client.addressableDevices().front()).id()};
  const std::string_view options(args.compile_options, args.compile_options_size);
  const auto sealed = compileFor(client.config(), *args.program, options, first);
  args.executable = release(LoadedExecutable::load(client, sealed, options));
}

/// Loads an executable that was compiled for a topology.
void load(PJRT_Client_Load_Args& args) {
  const auto& executable = object<Executable>(args.executable);
  args.loaded_executable =
      release(std::make_unique<LoadedExecutable>(object<Client>(args.client), executable.shared(),
                                                 executable.assignment(), executable.target()));
}

/// Runs no compiler and no Python.
void deserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  const std::string_view options(
      args.overridden_serialized_compile_options ? args.overridden_serialized_compile_options : "",
      args.overridden_serialized_compile_options_size);
  args.loaded_executable = release(LoadedExecutable::load(
      object<Client>(args.client), {args.serialized_executable, args.serialized_executable_size},
      options));
}

}  // namespace

void client::bind(PJRT_Api& api) {
  api.PJRT_Client_Create = guarded<create>;
  api.PJRT_Client_Destroy = guarded<destroy>;
  api.PJRT_Client_PlatformName = guarded<platformName>;
  api.PJRT_Client_PlatformVersion = guarded<platformVersion>;
  api.PJRT_Client_ProcessIndex = guarded<processIndex>;
  api.PJRT_Client_TopologyDescription = guarded<topologyDescription>;
  api.PJRT_Client_Devices = guarded<devices>;
  api.PJRT_Client_AddressableDevices = guarded<addressableDevices>;
  api.PJRT_Client_AddressableMemories = guarded<addressableMemories>;
  api.PJRT_Client_LookupDevice = guarded<lookupDevice>;
  api.PJRT_Client_LookupAddressableDevice = guarded<lookupAddressableDevice>;
  api.PJRT_Client_UpdateGlobalProcessInfo = guarded<updateGlobalProcessInfo>;
  api.PJRT_Client_DefaultDeviceAssignment = guarded<defaultDeviceAssignment>;
  api.PJRT_Client_Compile = guarded<compile>;
  api.PJRT_Client_Load = guarded<load>;
  api.PJRT_Executable_DeserializeAndLoad = guarded<deserializeAndLoad>;
}

}  // namespace ipujax::plugin
