#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace ipujax::embedded {

/// As the backends want arrays.
constexpr std::size_t kAlignment = 64;

inline bool isAligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0;
}
inline std::size_t roundedUp(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Memory that begins at a multiple of kAlignment, not initialised.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size)
      : data_(static_cast<std::byte*>(
            std::aligned_alloc(kAlignment, roundedUp(std::max<std::size_t>(size, 1))))),
        size_(size) {
    if (!data_) throw std::bad_alloc();
  }
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace ipujax::embedded
