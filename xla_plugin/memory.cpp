#include "memory.hpp"

#include <utility>

#include "device.hpp"
#include "handle.hpp"

namespace ipujax::plugin {
namespace {

void* getUserData(PJRT_Memory* memory, const void* key) {
  return object<Memory>(memory).userData(key);
}

void setUserData(PJRT_Memory* memory, const void* key, void* data, void (*destroy)(void*)) {
  object<Memory>(memory).setUserData(key, data, destroy);
}

const PJRT_Memory_FunctionTable kFunctions{.struct_size = sizeof(PJRT_Memory_FunctionTable),
                                           .extension_start = nullptr,
                                           .instance_struct_size = sizeof(PJRT_Memory),
                                           .get_user_data = getUserData,
                                           .set_user_data = setUserData};

}  // namespace

Memory::Memory(Device& device, runtime::MemoryKind kind, std::int64_t bytes_limit)
    : PJRT_Memory{&kFunctions},
      id_(device.id() * static_cast<int>(kNumMemories) + static_cast<int>(kind)),
      device_(&device),
      kind_(kind),
      kind_name_(runtime::nameOf(kind)),
      bytes_limit_(bytes_limit),
      to_string_("IpuMemory(id=" + std::to_string(id_) + ", kind=" + kind_name_ + ")") {}

Memory::~Memory() {
  for (const auto& [key, user] : user_data_) {
    if (user.destroy) user.destroy(user.data);
  }
}

Device& Memory::device() const { return *static_cast<Device*>(device_); }

void Memory::requireRoom(std::size_t bytes) const {
  const auto used = use_->bytes.load(std::memory_order_relaxed);
  if (kind_ == runtime::MemoryKind::kDevice ||
      static_cast<std::int64_t>(bytes) <= bytes_limit_ - used) {
    return;
  }
  throw PluginError(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                    "[ipu memory] needs " + std::to_string(bytes) + " bytes of " + kind_name_ +
                        " memory of " + device().description().toString() + "; got " +
                        std::to_string(bytes_limit_ - used) + " bytes free of " +
                        std::to_string(bytes_limit_) +
                        ". Delete arrays there, donate them, or shard them over more devices; "
                        "IPUJAX_STREAMING_GIGABYTES sets the size.");
}

void* Memory::userData(const void* key) const {
  const std::lock_guard lock(mutex_);
  const auto found = user_data_.find(key);
  return found == user_data_.end() ? nullptr : found->second.data;
}

void Memory::setUserData(const void* key, void* data, void (*destroy)(void*)) {
  UserData previous{nullptr, nullptr};
  {
    const std::lock_guard lock(mutex_);
    auto [found, inserted] = user_data_.try_emplace(key, UserData{data, destroy});
    if (!inserted) previous = std::exchange(found->second, UserData{data, destroy});
  }
  if (previous.destroy) previous.destroy(previous.data);
}

namespace {

void id(PJRT_Memory_Id_Args& args) { args.id = object<Memory>(args.memory).id(); }

void kind(PJRT_Memory_Kind_Args& args) {
  const auto& text = object<Memory>(args.memory).kindName();
  args.kind = text.data();
  args.kind_size = text.size();
}

void kindId(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = static_cast<int>(object<Memory>(args.memory).kind());
}

void debugString(PJRT_Memory_DebugString_Args& args) {
  const auto& text = object<Memory>(args.memory).toString();
  args.debug_string = text.data();
  args.debug_string_size = text.size();
}

void toString(PJRT_Memory_ToString_Args& args) {
  const auto& text = object<Memory>(args.memory).toString();
  args.to_string = text.data();
  args.to_string_size = text.size();
}

void addressableByDevices(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = object<Memory>(args.memory).devices();
  args.num_devices = 1;
}

}  // namespace

void memory::bind(PJRT_Api& api) {
  api.PJRT_Memory_Id = guarded<id>;
  api.PJRT_Memory_Kind = guarded<kind>;
  api.PJRT_Memory_Kind_Id = guarded<kindId>;
  api.PJRT_Memory_DebugString = guarded<debugString>;
  api.PJRT_Memory_ToString = guarded<toString>;
  api.PJRT_Memory_AddressableByDevices = guarded<addressableByDevices>;
}

}  // namespace ipujax::plugin
