#include "host_allocator.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace ipujax::plugin {
namespace {

constexpr std::size_t kSmallBytes = 256;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;

/// Four classes per power of two: at most a quarter of a block is unused.
std::size_t sizeClass(std::size_t bytes) {
  if (bytes <= kSmallBytes) return kSmallBytes;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

std::byte* newBlock(std::size_t capacity) {
  const bool huge = capacity >= kHugePageBytes;
  const std::size_t alignment = huge ? kHugePageBytes : HostAllocator::kAlignment;
  const std::size_t rounded = (capacity + alignment - 1) / alignment * alignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (!data) throw std::bad_alloc();
  if (huge) madvise(data, rounded, MADV_HUGEPAGE);  // only a hint: a refusal changes nothing
  return data;
}

}  // namespace

HostAllocator& HostAllocator::shared() {
  static auto* const instance = std::make_unique<HostAllocator>(kMaxKeptBytes).release();
  return *instance;
}

HostAllocator::~HostAllocator() { trim(); }

std::byte* HostAllocator::allocate(std::size_t bytes) {
  const std::size_t capacity = sizeClass(bytes);
  {
    const std::lock_guard lock(mutex_);
    auto* list = &small_;
    if (capacity != kSmallBytes) {
      const auto found = kept_.find(capacity);
      list = found == kept_.end() ? nullptr : &found->second;
    }
    if (list && !list->empty()) {
      std::byte* const data = list->back();
      list->pop_back();
      kept_bytes_ -= capacity;
      return data;
    }
  }
  return newBlock(capacity);
}

void HostAllocator::free(std::byte* data, std::size_t bytes) {
  if (!data) return;
  const std::size_t capacity = sizeClass(bytes);
  std::map<std::size_t, std::vector<std::byte*>> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + capacity > max_kept_bytes_) dropped = takeKept();
    if (capacity <= max_kept_bytes_) {
      auto& list = capacity == kSmallBytes ? small_ : kept_[capacity];
      list.push_back(data);
      kept_bytes_ += capacity;
      data = nullptr;
    }
  }
  std::free(data);
  for (auto& [size, list] : dropped) std::ranges::for_each(list, std::free);
}

void HostAllocator::trim() {
  std::map<std::size_t, std::vector<std::byte*>> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = takeKept();
  }
  for (auto& [capacity, list] : dropped) std::ranges::for_each(list, std::free);
}

std::size_t HostAllocator::keptBytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

std::map<std::size_t, std::vector<std::byte*>> HostAllocator::takeKept() {
  auto taken = std::exchange(kept_, {});
  taken[kSmallBytes] = std::exchange(small_, {});
  kept_bytes_ = 0;
  return taken;
}

}  // namespace ipujax::plugin
