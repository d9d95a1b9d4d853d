#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace ipujax::engine {

/// The scratch memory of one device. Programs on one device run one at a time and keep nothing
/// between runs, so all sessions of a device share one arena that grows to the largest need.
class DeviceMemory {
 public:
  std::byte* arena(std::uint64_t bytes);  ///< at least `bytes`, 64-byte aligned
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;  // zeroed at first, so that no run sees other data
  std::byte* aligned_ = nullptr;           // in it
  std::uint64_t bytes_ = 0;
};

}  // namespace ipujax::engine
