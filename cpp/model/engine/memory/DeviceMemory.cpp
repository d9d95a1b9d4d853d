#include "engine/memory/DeviceMemory.hpp"

#include <algorithm>
#include <new>

namespace ipujax::engine {

std::byte* DeviceMemory::arena(std::uint64_t bytes) {
  if (bytes > bytes_ || !data_) {
    constexpr std::size_t kAlignment = 64;
    const std::uint64_t needed = std::max<std::uint64_t>(bytes, kAlignment);
    std::size_t space = needed + kAlignment;
    data_.reset();
    bytes_ = 0;
    data_.reset(static_cast<std::byte*>(std::calloc(space, 1)));
    if (!data_) throw std::bad_alloc();
    void* at = data_.get();
    aligned_ = static_cast<std::byte*>(std::align(kAlignment, needed, at, space));
    bytes_ = needed;
  }
  return aligned_;
}

}  // namespace ipujax::engine
