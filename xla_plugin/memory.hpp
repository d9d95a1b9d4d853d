#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "pjrt_abi.hpp"
#include "storage.hpp"
#include "support/MemoryKind.hpp"

namespace ipujax::plugin {

class Device;

/// A memory of a device; each device has one of every runtime::MemoryKind. The model keeps the
/// arrays of both on the host, and counts them separately.
class Memory final : public PJRT_Memory {
 public:
  Memory(Device& device, runtime::MemoryKind kind, std::int64_t bytes_limit);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int id() const { return id_; }
  Device& device() const;
  PJRT_Device* const* devices() const { return &device_; }
  runtime::MemoryKind kind() const { return kind_; }
  const std::string& kindName() const { return kind_name_; }
  const std::string& toString() const { return to_string_; }

  std::int64_t bytesLimit() const { return bytes_limit_; }
  const std::shared_ptr<MemoryUse>& use() const { return use_; }
  /// Throws RESOURCE_EXHAUSTED unless this many more bytes fit. Tile memory always passes, because
  /// the compiler checks it and runs programs that do not fit if users want that.
  void requireRoom(std::size_t bytes) const;

  /// jaxlib attaches an object of its own to each memory.
  void* userData(const void* key) const;
  void setUserData(const void* key, void* data, void (*destroy)(void*));

 private:
  struct UserData {
    void* data;
    void (*destroy)(void*);
  };
  const int id_;
  PJRT_Device* device_;
  const runtime::MemoryKind kind_;
  const std::string kind_name_;
  const std::int64_t bytes_limit_;
  const std::shared_ptr<MemoryUse> use_ = std::make_shared<MemoryUse>();
  const std::string to_string_;
  mutable std::mutex mutex_;
  std::map<const void*, UserData> user_data_;
};

inline constexpr std::size_t kNumMemories = runtime::kMemoryKindNames.size();  ///< of a device

namespace memory {
void bind(PJRT_Api& api);
}  // namespace memory

}  // namespace ipujax::plugin
