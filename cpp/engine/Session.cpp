#include "engine/Session.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "engine/Kernel.hpp"

namespace ipujax::engine {

struct DeviceMemory::Impl {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

DeviceMemory::DeviceMemory() : impl_(std::make_unique<Impl>()) {}
DeviceMemory::~DeviceMemory() { std::free(impl_->data); }
std::uint64_t DeviceMemory::bytes() const { return impl_->bytes; }

std::byte* DeviceMemory::arena(std::uint64_t bytes) {
  if (bytes > impl_->bytes || !impl_->data) {
    const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 64) + 63) / 64 * 64;
    std::free(impl_->data);
    impl_->bytes = 0;
    impl_->data = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    if (!impl_->data) throw std::bad_alloc();
    impl_->bytes = rounded;
  }
  return impl_->data;
}

struct Session::Impl {
  /// Where a pointer comes from when it is not fixed for the life of the arena.
  struct Slot {
    std::uint32_t pointer;
    std::uint32_t buffer;
    std::int64_t offset_bytes;
  };

  Impl(std::shared_ptr<const Image> i, std::shared_ptr<DeviceMemory> m)
      : image(std::move(i)), memory(std::move(m)), bases(image->buffers.size(), nullptr) {
    for (std::uint32_t b = 0; b < image->buffers.size(); ++b) {
      const BufferDesc& buffer = image->buffers[b];
      if (buffer.kind == BufferKind::kConstant) {
        // Kernels take one pointer type for all operands; constants are only ever read.
        bases[b] = const_cast<std::byte*>(image->constants.data()) + buffer.offset;  // NOLINT
      } else if (buffer.kind != BufferKind::kArena) {
        bound_buffers.push_back(b);
      }
    }
    for (const auto& step : image->steps) {
      kernels.push_back(KernelRegistry::instance().make(step));
      first_pointer.push_back(static_cast<std::uint32_t>(pointers.size()));
      for (const auto& operand : step.operands) addSlot(operand);
    }
    first_pointer.push_back(static_cast<std::uint32_t>(pointers.size()));
    predicate_pointer.resize(image->nodes.size(), 0);
    for (std::size_t n = 0; n < image->nodes.size(); ++n) {
      const Node& node = image->nodes[n];
      if (node.kind != NodeKind::kRepeatWhile && node.kind != NodeKind::kIf &&
          node.kind != NodeKind::kSwitch)
        continue;
      predicate_pointer[n] = static_cast<std::uint32_t>(pointers.size());
      addSlot(node.predicate);
    }
  }

  void addSlot(const OperandDesc& operand) {
    const auto at = static_cast<std::uint32_t>(pointers.size());
    pointers.push_back(nullptr);
    const Slot slot{at, operand.buffer,
                    operand.offset * static_cast<std::int64_t>(sizeOf(operand.type))};
    const BufferKind kind = image->buffers[operand.buffer].kind;
    const bool fixed = kind == BufferKind::kArena || kind == BufferKind::kConstant;
    (fixed ? fixed_slots : bound_slots).push_back(slot);
  }

  void bindArena() {
    std::byte* base = memory->arena(image->arena_bytes);
    if (base == arena) return;
    arena = base;
    for (std::uint32_t b = 0; b < image->buffers.size(); ++b) {
      const BufferDesc& buffer = image->buffers[b];
      if (buffer.kind == BufferKind::kArena) bases[b] = base + buffer.offset;
    }
    for (const auto& slot : fixed_slots)
      pointers[slot.pointer] = bases[slot.buffer] + slot.offset_bytes;
  }

  void bindCaller(std::span<const void* const> inputs, std::span<void* const> outputs) {
    for (const std::uint32_t b : bound_buffers) {
      const BufferDesc& buffer = image->buffers[b];
      if (buffer.kind == BufferKind::kInput) {
        bases[b] = static_cast<std::byte*>(const_cast<void*>(inputs[buffer.input]));  // NOLINT
      } else if (buffer.kind == BufferKind::kOutput) {
        bases[b] = static_cast<std::byte*>(outputs[buffer.output]);
      } else if (buffer.kind == BufferKind::kInputOutput) {
        bases[b] = static_cast<std::byte*>(outputs[buffer.output]);
        if (inputs[buffer.input] != outputs[buffer.output] && buffer.bytes > 0)
          std::memcpy(bases[b], inputs[buffer.input], buffer.bytes);
      }
    }
    for (const auto& slot : bound_slots)
      pointers[slot.pointer] = bases[slot.buffer] + slot.offset_bytes;
  }

  bool predicate(std::uint32_t index) const {
    return *reinterpret_cast<const std::uint8_t*>(pointers[predicate_pointer[index]]) != 0;
  }

  std::int64_t selector(std::uint32_t index) const {
    const std::byte* p = pointers[predicate_pointer[index]];
    if (sizeOf(image->nodes[index].predicate.type) == 1)
      return *reinterpret_cast<const std::int8_t*>(p);
    std::int32_t value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }

  void checkCancelled() {
    if (cancelled.exchange(false, std::memory_order_relaxed))
      throw std::runtime_error("[Session] the program was cancelled");
  }

  void execute(RunContext& context, std::uint32_t index) {
    const Node& node = image->nodes[index];
    switch (node.kind) {
      case NodeKind::kSequence:
        for (const auto child : node.children) execute(context, child);
        return;
      case NodeKind::kStep: {
        const auto first = first_pointer[node.value];
        kernels[node.value]->run(context,
                                 {pointers.data() + first, first_pointer[node.value + 1] - first});
        return;
      }
      case NodeKind::kRepeat:
        for (std::uint64_t i = 0; i < node.value; ++i) {
          checkCancelled();
          execute(context, node.children[0]);
        }
        return;
      case NodeKind::kRepeatWhile:
        for (;;) {
          checkCancelled();
          execute(context, node.children[0]);
          if (predicate(index) != (node.value != 0)) return;
          execute(context, node.children[1]);
        }
      case NodeKind::kIf:
        execute(context, node.children[predicate(index) ? 0 : 1]);
        return;
      case NodeKind::kSwitch: {
        const std::int64_t value = selector(index);
        std::size_t chosen = node.selectors.size();
        for (std::size_t i = 0; i < node.selectors.size(); ++i) {
          if (node.selectors[i] == value) {
            chosen = i;
            break;
          }
        }
        execute(context, node.children[chosen]);
        return;
      }
      case NodeKind::kError:
        throw std::runtime_error(image->debug[node.value].name);
    }
  }

  std::shared_ptr<const Image> image;
  std::shared_ptr<DeviceMemory> memory;
  std::byte* arena = nullptr;
  std::vector<std::byte*> bases;
  std::vector<std::byte*> pointers;
  std::vector<std::uint32_t> first_pointer;
  std::vector<std::uint32_t> predicate_pointer;
  std::vector<std::uint32_t> bound_buffers;
  std::vector<Slot> fixed_slots;
  std::vector<Slot> bound_slots;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::atomic<bool> cancelled{false};
};

Session::Session(std::shared_ptr<const Image> image, std::shared_ptr<DeviceMemory> memory)
    : impl_(std::make_unique<Impl>(std::move(image), std::move(memory))) {}
Session::~Session() = default;

const Image& Session::image() const { return *impl_->image; }
void Session::cancel() { impl_->cancelled.store(true, std::memory_order_relaxed); }

void Session::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                  HostCallbacks* callbacks, HostStreams* streams) {
  const Signature& signature = impl_->image->signature;
  if (inputs.size() != signature.inputs.size() || outputs.size() != signature.outputs.size()) {
    throw std::invalid_argument("[Session::run] needs " + std::to_string(signature.inputs.size()) +
                                " inputs and " + std::to_string(signature.outputs.size()) +
                                " outputs; got " + std::to_string(inputs.size()) + " and " +
                                std::to_string(outputs.size()));
  }
  impl_->bindArena();
  impl_->bindCaller(inputs, outputs);
  RunContext context{ThreadPool::shared(), callbacks, streams};
  impl_->execute(context, 0);
}

}  // namespace ipujax::engine
