#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace ipujax::embedded {

/// The alignment of arrays that the backends require.
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
  explicit AlignedBytes(std::size_t size) : data_(allocate(size)), size_(size) {
    if (!data_) throw std::bad_alloc();
  }
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  /// Uses huge pages for large memory, whose first write then costs a third.
  static std::byte* allocate(std::size_t size) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    const bool is_large = size >= 2 * kHugePage;
    const std::size_t alignment = is_large ? kHugePage : kAlignment;
    const std::size_t rounded =
        (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
    void* const data = std::aligned_alloc(alignment, rounded);
    // Only a hint: without huge pages the memory still works.
    if (data && is_large) ::madvise(data, rounded, MADV_HUGEPAGE);
    return static_cast<std::byte*>(data);
  }
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace ipujax::embedded
