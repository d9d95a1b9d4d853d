#include "storage.hpp"

#include <utility>

#include "support/Seal.hpp"

namespace ipujax::plugin {
namespace {

void raise(std::atomic<std::int64_t>& maximum, std::int64_t value) {
  auto seen = maximum.load(std::memory_order_relaxed);
  while (seen < value && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

std::uint64_t newContents() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void MemoryUse::add(std::int64_t amount) {
  const auto now = bytes.fetch_add(amount, std::memory_order_relaxed) + amount;
  allocations.fetch_add(1, std::memory_order_relaxed);
  raise(peak_bytes, now);
  raise(largest_bytes, amount);
}

void MemoryUse::clear() {
  peak_bytes.store(bytes.load());
  allocations.store(0);
  largest_bytes.store(0);
}

Storage::Storage(std::size_t bytes, std::shared_ptr<MemoryUse> use)
    : bytes_(bytes), use_(std::move(use)) {
  use_->add(static_cast<std::int64_t>(bytes_));
}

std::uint64_t Storage::contents() {
  std::uint64_t known = contents_.load(std::memory_order_acquire);
  if (known != 0) return known;
  const std::uint64_t number = newContents();
  return contents_.compare_exchange_strong(known, number, std::memory_order_acq_rel) ? number
                                                                                     : known;
}

void Storage::renewContents() { contents_.store(newContents(), std::memory_order_release); }

void Storage::seal(bool on) {
  if (on) checksum_ = runtime::checksum(data(), bytes_);
  is_sealed_.store(on, std::memory_order_release);
}

bool Storage::isIntact() { return !isSealed() || runtime::checksum(data(), bytes_) == checksum_; }

std::byte* Storage::allocate() {
  std::byte* const block = HostAllocator::shared().allocate(bytes_);
  std::byte* first = nullptr;
  if (data_.compare_exchange_strong(first, block, std::memory_order_acq_rel)) return block;
  HostAllocator::shared().free(block, bytes_);  // another thread was first
  return first;
}

Storage::~Storage() {
  use_->remove(static_cast<std::int64_t>(bytes_));
  HostAllocator::shared().free(data_.load(), bytes_);
}

}  // namespace ipujax::plugin
