#include "device.hpp"

#include <utility>

#include "handle.hpp"
#include "runtime/Backend.hpp"
#include "support/Interrupts.hpp"

namespace ipujax::plugin {
namespace {

std::shared_ptr<runtime::DeviceState> stateOf(int local_id, const PlatformConfig& config) {
  if (local_id < 0) return nullptr;
  return runtime::makeDeviceState({.first_ipu = config.firstIpuOf(local_id),
                                   .num_ipus = config.ipus_per_device,
                                   .tiles_per_ipu = config.num_tiles});
}

}  // namespace

Device::Device(int id, int process_index, int local_id, const PlatformConfig& config,
               std::shared_ptr<ClientViews> views)
    : description_(id, process_index, config),
      local_id_(local_id),
      memories_{Memory(*this, runtime::MemoryKind::kDevice, config.deviceBytes()),
                Memory(*this, runtime::MemoryKind::kPinnedHost, config.streamingBytes())},
      memory_handles_{&memories_[0], &memories_[1]},
      runtime_(std::make_shared<DeviceRuntime>(stateOf(local_id, config), config.connection)),
      views_(std::move(views)) {}

Device::~Device() { close(); }

void Device::close() {
  {
    const std::lock_guard lock(runtime_->running_mutex);
    if (runtime_->running) runtime_->running->session->cancel();
  }
  queue_.close();
  transfers_.close();
}

bool Device::endInterrupted() {
  const auto count = runtime::interrupts::count();
  const std::lock_guard lock(runtime_->running_mutex);
  const auto& run = runtime_->running;
  if (!run) return !queue_.idle();
  if (run->interrupts >= count) return false;
  const bool is_long = std::chrono::steady_clock::now() - run->begin >= runtime::interrupts::kGrace;
  if (!is_long && runtime_->interrupts_obeyed.load() < count) return true;
  runtime_->interrupts_obeyed.store(count);
  run->was_interrupted.store(true);
  run->session->cancel();
  return true;
}

namespace {

void getDescription(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &object<Device>(args.device).description();
}

void isAddressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = object<Device>(args.device).isAddressable();
}

void localHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = object<Device>(args.device).localId();
}

void addressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  const auto& memories = object<Device>(args.device).memories();
  args.memories = memories.data();
  args.num_memories = memories.size();
}

void defaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = &object<Device>(args.device).defaultMemory();
}

/// Tile memory as the model sees it: arrays count by their bytes, the limit is that of all tiles.
/// JAX does not ask for other memories; memory_stats in the Python module reports them.
void memoryStats(PJRT_Device_MemoryStats_Args& args) {
  const auto& memory = object<Device>(args.device).defaultMemory();
  const auto& use = *memory.use();
  args.bytes_in_use = use.bytes.load(std::memory_order_relaxed);
  args.peak_bytes_in_use = use.peak_bytes.load(std::memory_order_relaxed);
  args.peak_bytes_in_use_is_set = true;
  args.num_allocs = use.allocations.load(std::memory_order_relaxed);
  args.num_allocs_is_set = true;
  args.largest_alloc_size = use.largest_bytes.load(std::memory_order_relaxed);
  args.largest_alloc_size_is_set = true;
  args.bytes_limit = memory.bytesLimit();
  args.bytes_limit_is_set = true;
  args.bytes_reserved_is_set = false;
  args.peak_bytes_reserved_is_set = false;
  args.bytes_reservable_limit = args.bytes_limit;  // nothing is set aside
  args.bytes_reservable_limit_is_set = true;
  args.largest_free_block_bytes_is_set = false;
  args.pool_bytes_is_set = false;
  args.peak_pool_bytes_is_set = false;
}

void clearMemoryStats(PJRT_Device_ClearMemoryStats_Args& args) {
  for (auto* memory : object<Device>(args.device).memories()) object<Memory>(memory).use()->clear();
}

void deleteNothing(PJRT_Device_Attributes*) {}  // the device owns them; null is not allowed

void getAttributes(PJRT_Device_GetAttributes_Args& args) {
  const auto& values = object<Device>(args.device).description().attributes();
  args.attributes = values.data();
  args.num_attributes = values.size();
  args.device_attributes = nullptr;
  args.attributes_deleter = deleteNothing;
}

}  // namespace

void device::bind(PJRT_Api& api) {
  api.PJRT_Device_GetDescription = guarded<getDescription>;
  api.PJRT_Device_IsAddressable = guarded<isAddressable>;
  api.PJRT_Device_LocalHardwareId = guarded<localHardwareId>;
  api.PJRT_Device_AddressableMemories = guarded<addressableMemories>;
  api.PJRT_Device_DefaultMemory = guarded<defaultMemory>;
  api.PJRT_Device_MemoryStats = guarded<memoryStats>;
  api.PJRT_Device_ClearMemoryStats = guarded<clearMemoryStats>;
  api.PJRT_Device_GetAttributes = guarded<getAttributes>;
}

}  // namespace ipujax::plugin
