#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "host_allocator.hpp"
#include "ref.hpp"

namespace ipujax::plugin {

/// How much of one memory its buffers use, in bytes. Shared by the memory and every storage, since
/// a buffer may outlive its client.
struct MemoryUse {
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> peak_bytes{0};
  std::atomic<std::int64_t> allocations{0};
  std::atomic<std::int64_t> largest_bytes{0};

  void add(std::int64_t amount);
  void clear();  ///< resets all statistics but `bytes`
  void remove(std::int64_t amount) { bytes.fetch_sub(amount, std::memory_order_relaxed); }
};

/// The memory of a buffer. Buffers, launches and copies in flight share it; the last owner returns
/// it. The block is allocated at its first use, so that the results of queued launches use, one
/// after the other, memory that is still in the caches.
class Storage final : public Counted {
 public:
  Storage(std::size_t bytes, std::shared_ptr<MemoryUse> use);
  ~Storage();

  /// The first call throws std::bad_alloc if there is no memory.
  std::byte* data() {
    std::byte* const data = data_.load(std::memory_order_acquire);
    return data ? data : allocate();
  }
  std::size_t bytes() const { return bytes_; }

  /// A number that identifies the present contents; no other storage has or had it. For use on the
  /// device's queue. A program that overwrites the memory renews it.
  std::uint64_t contents();
  void renewContents();

  /// For checked transfers: remembers a checksum of the contents, or forgets it if `on` is false. A
  /// program that writes to the memory calls this again.
  void seal(bool on);
  /// Whether the contents still match the checksum; true if none is remembered.
  bool isIntact();
  bool isSealed() const { return is_sealed_.load(std::memory_order_acquire); }
  std::uint64_t checksum() const { return checksum_; }
  /// True once after the host put an array here and sealed it.
  bool takeArrival() {
    return has_arrived_.load(std::memory_order_acquire) &&
           has_arrived_.exchange(false, std::memory_order_acq_rel);
  }
  void arrive() { has_arrived_.store(true, std::memory_order_release); }

  /// A hold is a reader outside the device's queue: a view on the host or a copy to it.
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
