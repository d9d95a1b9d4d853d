#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "host_allocator.hpp"
#include "ref.hpp"

namespace ipujax::plugin {

/// What the buffers in one memory take, in bytes. Shared by the memory and every storage, since a
/// buffer may outlive its client.
struct MemoryUse {
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> peak_bytes{0};
  std::atomic<std::int64_t> allocations{0};
  std::atomic<std::int64_t> largest_bytes{0};

  void add(std::int64_t amount);
  void clear();  ///< all but the bytes themselves
  void remove(std::int64_t amount) { bytes.fetch_sub(amount, std::memory_order_relaxed); }
};

/// The memory behind a buffer. Buffers, launches and copies in flight share it; the last one to let
/// go returns it. A block is taken when it is first written, so that results of queued launches
/// use, one after the other, memory that the caches still hold.
class Storage final : public Counted {
 public:
  Storage(std::size_t bytes, std::shared_ptr<MemoryUse> use);
  ~Storage();

  /// Throws std::bad_alloc on the first call where there is no memory.
  std::byte* data() {
    std::byte* const data = data_.load(std::memory_order_acquire);
    return data ? data : allocate();
  }
  std::size_t bytes() const { return bytes_; }

  /// The number of what is in the memory now, and none that another storage has or had; for what is
  /// run on the device's queue. A program that overwrites the memory renews it.
  std::uint64_t contents();
  void renewContents();

  /// For checked transfers: remembers a checksum of what is in the memory. A program that writes
  /// there seals it again, or lets it be forgotten.
  void seal(bool on);
  /// Whether that is still there; true if nothing is remembered.
  bool isIntact();
  bool isSealed() const { return is_sealed_.load(std::memory_order_acquire); }
  std::uint64_t checksum() const { return checksum_; }
  /// True once after the host put its array there and it was sealed.
  bool takeArrival() {
    return has_arrived_.load(std::memory_order_acquire) &&
           has_arrived_.exchange(false, std::memory_order_acq_rel);
  }
  void arrive() { has_arrived_.store(true, std::memory_order_release); }

  /// A hold is a reader outside the device's queue: a view in the host's hands or a copy to it.
  void hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  void unhold() { holds_.fetch_sub(1, std::memory_order_release); }
  /// True when a program may write here: nobody outside the queue reads it.
  bool mayOverwrite() const { return holds_.load(std::memory_order_acquire) == 0; }

 private:
  std::byte* allocate();

  std::atomic<std::byte*> data_{nullptr};
  const std::size_t bytes_;
  std::atomic<std::int32_t> holds_{0};
  std::atomic<std::uint64_t> contents_{0};  ///< 0: nobody has asked
  std::uint64_t checksum_ = 0;
  std::atomic<bool> is_sealed_{false};
  std::atomic<bool> has_arrived_{false};
  std::shared_ptr<MemoryUse> use_;
};

}  // namespace ipujax::plugin
