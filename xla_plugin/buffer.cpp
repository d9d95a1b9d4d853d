#include "buffer.hpp"

#include <utility>

#include "handle.hpp"
#include "strided_copy.hpp"
#include "transfer_checks.hpp"
#include "transfer_guard.hpp"

namespace ipujax::plugin {

Buffer::Buffer(Memory& memory, std::shared_ptr<const Shape> shape, Ref<Storage> storage,
               Ref<Event> ready)
    : memory_(memory),
      shape_(std::move(shape)),
      ready_(std::move(ready)),
      storage_(std::move(storage)) {}

void Buffer::failDeleted() {
  failInvalidArgument(
      "[ipu buffer] needs an array that is still there; got one that was deleted or donated. "
      "Use the array that the donating call returned.");
}

Ref<Storage> Buffer::storage() const {
  const std::lock_guard lock(mutex_);
  if (isDeleted()) failDeleted();
  return storage_;
}

Ref<Storage> Buffer::holdStorage() const {
  const std::lock_guard lock(mutex_);
  if (isDeleted()) failDeleted();
  storage_->hold();
  return storage_;
}

bool Buffer::donate() {
  Ref<Storage> storage, arranged;
  const std::lock_guard lock(mutex_);
  if (isDeleted()) failDeleted();
  deleted_.store(true, std::memory_order_release);
  if (external_references_ > 0) return false;  // the storage stays for the views
  storage = std::move(storage_);
  arranged = std::move(arranged_);
  return storage->mayOverwrite();
}

void Buffer::markDeleted() {
  Ref<Storage> released, arranged;  // freed after the lock
  const std::lock_guard lock(mutex_);
  deleted_.store(true, std::memory_order_release);
  if (external_references_ > 0) return;
  released = std::move(storage_);
  arranged = std::move(arranged_);
}

void Buffer::addExternalReference() {
  const std::lock_guard lock(mutex_);
  if (isDeleted()) failDeleted();
  if (external_references_++ == 0) storage_->hold();
}

void Buffer::dropExternalReference() {
  Ref<Storage> released, arranged;
  const std::lock_guard lock(mutex_);
  if (external_references_ == 0) {
    failInvalidArgument("[ipu buffer] needs an external reference to drop; got none.");
  }
  if (--external_references_ > 0) return;
  storage_->unhold();
  if (!isDeleted()) return;
  released = std::move(storage_);
  arranged = std::move(arranged_);
}

void* Buffer::externalPointer() {
  const std::lock_guard lock(mutex_);
  if (!storage_) failDeleted();
  if (shape_->isRowMajor()) return storage_->data();
  if (!arranged_) arrange();
  return arranged_->data();
}

/// Fills the copy, now or once the buffer is ready.
void Buffer::arrange() {
  // The copy is on the host, not on the device, so it counts towards no memory's use.
  arranged_ = makeRef<Storage>(shape_->bytes, std::make_shared<MemoryUse>());
  storage_->hold();
  ready_->then([from = storage_, to = arranged_, shape = shape_](const FailurePtr& failure) {
    if (!failure) {
      const Shape row_major(shape->type, shape->dims);
      stridedCopy(to->data(), shape->strides(), from->data(), row_major.strides(), shape->dims,
                  shape->element_bytes);
    }
    from->unhold();
  });
}

namespace {

void destroy(PJRT_Buffer_Destroy_Args& args) { adopt<Buffer>(args.buffer).reset(); }

void elementType(PJRT_Buffer_ElementType_Args& args) {
  args.type = object<Buffer>(args.buffer).shape().type;
}

void dimensions(PJRT_Buffer_Dimensions_Args& args) {
  const auto& dims = object<Buffer>(args.buffer).shape().dims;
  args.dims = dims.data();
  args.num_dims = dims.size();
}

void unpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  const auto& dims = object<Buffer>(args.buffer).shape().dims;
  args.unpadded_dims = dims.data();
  args.num_dims = dims.size();
}

void dynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void getMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  const auto& order = object<Buffer>(args.buffer).shape().minor_to_major;
  args.layout = {};
  args.layout.struct_size = sizeof(PJRT_Buffer_MemoryLayout);
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled);
  args.layout.tiled.minor_to_major = order.data();
  args.layout.tiled.minor_to_major_size = order.size();
}

void onDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = object<Buffer>(args.buffer).shape().bytes;
}

void deviceOf(PJRT_Buffer_Device_Args& args) {
  args.device = &object<Buffer>(args.buffer).device();
}

void memoryOf(PJRT_Buffer_Memory_Args& args) {
  args.memory = &object<Buffer>(args.buffer).memory();
}

void deleteEntry(PJRT_Buffer_Delete_Args& args) { object<Buffer>(args.buffer).markDeleted(); }

void isDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = object<Buffer>(args.buffer).isDeleted();
}

/// True, so that views need no copy, unless JAX guards transfers or they are checked: views would
/// bypass both.
void isOnCpu(PJRT_Buffer_IsOnCpu_Args& args) {
  args.is_on_cpu = !transfer_guard::active() && !transfer_checks::isOn();
}

void readyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  args.event = event::give(object<Buffer>(args.buffer).ready());
}

void unsafePointer(PJRT_Buffer_UnsafePointer_Args& args) {
  args.buffer_pointer =
      reinterpret_cast<std::uintptr_t>(object<Buffer>(args.buffer).externalPointer());
}

void increaseReferences(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  auto& buffer = object<Buffer>(args.buffer);
  buffer.addExternalReference();
  buffer.device().views().add();
}

void decreaseReferences(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  auto& buffer = object<Buffer>(args.buffer);
  buffer.dropExternalReference();
  buffer.device().views().drop();
}

void dataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  args.device_memory_ptr = object<Buffer>(args.buffer).externalPointer();
}

}  // namespace

void buffer::bind(PJRT_Api& api) {
  api.PJRT_Buffer_Destroy = guarded<destroy>;
  api.PJRT_Buffer_ElementType = guarded<elementType>;
  api.PJRT_Buffer_Dimensions = guarded<dimensions>;
  api.PJRT_Buffer_UnpaddedDimensions = guarded<unpaddedDimensions>;
  api.PJRT_Buffer_DynamicDimensionIndices = guarded<dynamicDimensionIndices>;
  api.PJRT_Buffer_GetMemoryLayout = guarded<getMemoryLayout>;
  api.PJRT_Buffer_OnDeviceSizeInBytes = guarded<onDeviceSizeInBytes>;
  api.PJRT_Buffer_Device = guarded<deviceOf>;
  api.PJRT_Buffer_Memory = guarded<memoryOf>;
  api.PJRT_Buffer_Delete = guarded<deleteEntry>;
  api.PJRT_Buffer_IsDeleted = guarded<isDeleted>;
  api.PJRT_Buffer_IsOnCpu = guarded<isOnCpu>;
  api.PJRT_Buffer_ReadyEvent = guarded<readyEvent>;
  api.PJRT_Buffer_UnsafePointer = guarded<unsafePointer>;
  api.PJRT_Buffer_IncreaseExternalReferenceCount = guarded<increaseReferences>;
  api.PJRT_Buffer_DecreaseExternalReferenceCount = guarded<decreaseReferences>;
  api.PJRT_Buffer_OpaqueDeviceMemoryDataPointer = guarded<dataPointer>;
}

}  // namespace ipujax::plugin
