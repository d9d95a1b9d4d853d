#pragma once
#include <map>
#include <mutex>
#include <string>

#include "pjrt_abi.hpp"

namespace ipujax::plugin {

class Device;

/// A memory of a device. Each device has one of kind "device": tile memory, which the model keeps
/// on the host. Kinds on the host's side (streaming memory) will stand beside it.
class Memory final : public PJRT_Memory {
 public:
  Memory(int id, Device& device, std::string kind);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int id() const { return id_; }
  Device& device() const;
  PJRT_Device* const* devices() const { return &device_; }
  const std::string& kind() const { return kind_; }
  const std::string& toString() const { return to_string_; }

  /// jaxlib keeps an object of its own beside each memory.
  void* userData(const void* key) const;
  void setUserData(const void* key, void* data, void (*destroy)(void*));

 private:
  struct UserData {
    void* data;
    void (*destroy)(void*);
  };
  const int id_;
  PJRT_Device* device_;
  const std::string kind_;
  const std::string to_string_;
  mutable std::mutex mutex_;
  std::map<const void*, UserData> user_data_;
};

namespace memory {
inline constexpr const char* kDeviceKind = "device";
void bind(PJRT_Api& api);
}  // namespace memory

}  // namespace ipujax::plugin
