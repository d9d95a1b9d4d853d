#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "device.hpp"
#include "event.hpp"
#include "shape.hpp"
#include "storage.hpp"

namespace ipujax::plugin {

/// An array in a memory of a device. Owned by jaxlib; launches and copies in flight share its
/// memory. A buffer whose ready event failed is poisoned: the failure passes to all its users.
class Buffer final : public PJRT_Buffer {
 public:
  Buffer(Memory& memory, std::shared_ptr<const Shape> shape, Ref<Storage> storage,
         Ref<Event> ready);

  Memory& memory() const { return memory_; }
  Device& device() const { return memory_.device(); }
  const Shape& shape() const { return *shape_; }
  const std::shared_ptr<const Shape>& sharedShape() const { return shape_; }
  const Ref<Event>& ready() const { return ready_; }
  bool isDeleted() const { return deleted_.load(std::memory_order_acquire); }

  Ref<Storage> storage() const;  ///< throws once deleted
  /// The same, but not overwritten until `unhold`: for readers outside the queue.
  Ref<Storage> holdStorage() const;
  /// Deletes the buffer; returns whether a program may take over its memory.
  bool donate();
  void markDeleted();

  /// External references are views on the host that keep the memory even after deletion.
  void addExternalReference();
  void dropExternalReference();
  /// Points to the elements in the order of the layout, once the buffer is ready.
  void* externalPointer();

  /// The launch that last took this buffer as an argument; guarded by the client's submit mutex.
  std::uint64_t last_launch = 0;

 private:
  [[noreturn]] static void failDeleted();
  void arrange();  ///< with the mutex held

  Memory& memory_;
  const std::shared_ptr<const Shape> shape_;
  const Ref<Event> ready_;
  mutable std::mutex mutex_;  // guards the members below
  Ref<Storage> storage_;
  Ref<Storage> arranged_;  ///< a copy in the order of the layout, for externalPointer
  std::int64_t external_references_ = 0;
  std::atomic<bool> deleted_{false};
};

namespace buffer {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
