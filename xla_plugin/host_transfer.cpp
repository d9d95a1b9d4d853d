#include "host_transfer.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "handle.hpp"
#include "strided_copy.hpp"
#include "support/Seal.hpp"
#include "transfer_checks.hpp"

namespace ipujax::plugin {
namespace {

/// Copies to the host up to this size are made at once, although the caller holds the GIL.
constexpr std::size_t kInlineCopyBytes = std::size_t{1} << 20;

using Strides = std::vector<std::int64_t>;

/// Byte strides of a host array in PJRT's description; those of the buffer when there is none.
Strides stridesOf(const PJRT_Buffer_MemoryLayout* layout, const Shape& shape) {
  if (!layout) return shape.strides();
  Strides strides(shape.dims.size());
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    if (layout->strides.num_byte_strides != strides.size()) {
      failInvalidArgument("[ipu transfer] needs one stride per dimension of the host array.");
    }
    strides.assign(layout->strides.byte_strides,
                   layout->strides.byte_strides + layout->strides.num_byte_strides);
  } else {
    if (layout->tiled.num_tiles != 0 || layout->tiled.minor_to_major_size != strides.size()) {
      throw PluginError(PJRT_Error_Code_UNIMPLEMENTED,
                        "[ipu transfer] needs an untiled host array; got a tiled layout. "
                        "Use the default layout.");
    }
    denseStrides(shape.dims, {layout->tiled.minor_to_major, strides.size()}, shape.element_bytes,
                 strides);
  }
  return strides;
}

/// The order of the dimensions in PJRT's description of a layout; empty when there is none.
std::vector<std::int64_t> orderOf(const PJRT_Buffer_MemoryLayout* layout, std::size_t rank) {
  if (!layout) return {};
  const bool by_order = layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled;
  if (!by_order || layout->tiled.num_tiles != 0) {
    throw PluginError(PJRT_Error_Code_UNIMPLEMENTED,
                      "[ipu transfer] needs a device layout that orders the dimensions; got one "
                      "with tiles or strides. Use Layout(major_to_minor) alone.");
  }
  const auto* first = layout->tiled.minor_to_major;
  std::vector<std::int64_t> order(first, first + layout->tiled.minor_to_major_size);
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (!std::ranges::is_permutation(order, axes)) {
    failInvalidArgument("[ipu transfer] needs a device layout with each of the " +
                        std::to_string(rank) +
                        " dimensions once; got another. Correct the layout's major_to_minor.");
  }
  return order;
}

Memory& targetOf(PJRT_Memory* memory, PJRT_Device* device) {
  return memory ? object<Memory>(memory) : object<Device>(device).defaultMemory();
}

/// Copies inside the call, whatever the semantics allow: jaxlib passes the same ones for
/// `jnp.array`, which copies, as for arguments, and the user may change the array right after.
void fromHost(PJRT_Client_BufferFromHostBuffer_Args& args) {
  auto& memory = targetOf(args.memory, args.device);
  const auto shape = std::make_shared<const Shape>(
      args.type, std::vector<std::int64_t>(args.dims, args.dims + args.num_dims),
      orderOf(args.device_layout, args.num_dims));
  Strides strides(args.num_dims);
  if (args.byte_strides) {
    strides.assign(args.byte_strides, args.byte_strides + args.num_byte_strides);
  } else {
    rowMajorStrides(shape->dims, shape->element_bytes, strides);
  }
  memory.requireRoom(shape->bytes);
  auto storage = makeRef<Storage>(shape->bytes, memory.use());
  Strides dense(args.num_dims);
  rowMajorStrides(shape->dims, shape->element_bytes, dense);
  stridedCopy(storage->data(), dense, static_cast<const std::byte*>(args.data), strides,
              shape->dims, shape->element_bytes);
  if (transfer_checks::isOn()) {
    storage->seal(true);
    storage->arrive();
  }
  args.buffer =
      release(std::make_unique<Buffer>(memory, shape, std::move(storage), Event::ready()));
  args.done_with_host_buffer = event::give(Event::ready());
}

/// One array on its way to the host. Keeps the source from being overwritten meanwhile.
class HostCopy final : public Task {
 public:
  HostCopy(const Buffer& buffer, std::byte* to, Strides to_strides, Ref<Event> done)
      : shape_(buffer.sharedShape()),
        from_(buffer.holdStorage()),
        to_(to),
        to_strides_(std::move(to_strides)),
        done_(std::move(done)) {}
  ~HostCopy() override {
    if (from_) from_->unhold();
  }

  void run() noexcept override {
    FailurePtr failure;
    try {
      copy();
    } catch (...) {
      failure = currentFailure();
    }
    fail(failure);
  }

  void fail(const FailurePtr& failure) noexcept override {
    from_->unhold();
    from_ = Ref<Storage>();
    done_->set(failure);
  }

 private:
  void copy() {
    write();
    if (!from_->isSealed()) return;
    const bool is_dense = isRowMajor(shape_->dims, to_strides_, shape_->element_bytes);
    const bool is_same =
        is_dense ? runtime::checksum(to_, shape_->bytes) == from_->checksum() : from_->isIntact();
    if (is_same) return;
    throw PluginError(PJRT_Error_Code_DATA_LOSS,
                      "[ipu transfer] needs arrays that arrive as they were sent; got other bytes "
                      "than the device had of " +
                          std::to_string(shape_->bytes) + ". Compute the result again.");
  }

  void write() {
    if (isRowMajor(shape_->dims, to_strides_, shape_->element_bytes)) {
      std::memcpy(to_, from_->data(), shape_->bytes);
      return;
    }
    Strides dense(shape_->dims.size());
    rowMajorStrides(shape_->dims, shape_->element_bytes, dense);
    stridedCopy(to_, to_strides_, from_->data(), dense, shape_->dims, shape_->element_bytes);
  }

  const std::shared_ptr<const Shape> shape_;
  Ref<Storage> from_;
  std::byte* const to_;
  const Strides to_strides_;
  const Ref<Event> done_;
};

/// Called with the GIL held, so it never waits.
void toHost(PJRT_Buffer_ToHostBuffer_Args& args) {
  const auto& source = object<Buffer>(args.src);
  const auto& shape = source.shape();
  if (!args.dst) {
    args.dst_size = shape.bytes;
    return;
  }
  if (args.dst_size < shape.bytes) {
    failInvalidArgument("[ipu transfer] needs " + std::to_string(shape.bytes) +
                        " bytes of host memory; got " + std::to_string(args.dst_size) + ".");
  }
  auto done = Event::pending();
  auto copy = std::make_shared<std::unique_ptr<Task>>(std::make_unique<HostCopy>(
      source, static_cast<std::byte*>(args.dst), stridesOf(args.host_layout, shape), done));
  auto& transfers = source.device().transfers();
  const bool large = shape.bytes > kInlineCopyBytes;
  source.ready()->then([copy, large, &transfers](const FailurePtr& failure) {
    auto task = std::move(*copy);
    if (failure) return task->fail(failure);
    if (large) task = transfers.push(std::move(task));
    if (task) task->run();
  });
  args.event = event::give(std::move(done));
}

/// Makes a buffer on `target` with the contents of `source`, now or once `source` is ready.
PJRT_Buffer* copyTo(const Buffer& source, Memory& target) {
  const auto bytes = source.shape().bytes;
  target.requireRoom(bytes);
  auto from = source.holdStorage();
  auto to = makeRef<Storage>(bytes, target.use());
  auto copy = [from, to, bytes] {
    std::memcpy(to->data(), from->data(), bytes);
    to->seal(transfer_checks::isOn());
    from->unhold();
  };
  auto ready = Event::ready();
  if (source.ready()->isReady() && !source.ready()->failure()) {
    copy();
  } else {
    ready = Event::pending();
    source.ready()->then([copy, from, ready](const FailurePtr& failure) {
      failure ? from->unhold() : copy();
      ready->set(failure);
    });
  }
  return release(std::make_unique<Buffer>(target, source.sharedShape(), to, ready));
}

void copyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  args.dst_buffer = copyTo(object<Buffer>(args.buffer), object<Memory>(args.dst_memory));
}

void copyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  args.dst_buffer =
      copyTo(object<Buffer>(args.buffer), object<Device>(args.dst_device).defaultMemory());
}

}  // namespace

void host_transfer::bind(PJRT_Api& api) {
  api.PJRT_Client_BufferFromHostBuffer = guarded<fromHost>;
  api.PJRT_Buffer_ToHostBuffer = guarded<toHost>;
  api.PJRT_Buffer_CopyToMemory = guarded<copyToMemory>;
  api.PJRT_Buffer_CopyToDevice = guarded<copyToDevice>;
}

}  // namespace ipujax::plugin
