#include "engine/memory/ReplicaBindings.hpp"

#include <cstring>
#include <utility>

#include "engine/kernels/move/Turn.hpp"

namespace ipujax::engine {

PointerTable::PointerTable(const Image& image) : turning_(image.buffers.size()) {
  for (std::uint32_t b = 0; b < image.buffers.size(); ++b) {
    const BufferKind kind = image.buffers[b].kind;
    if (kind != BufferKind::kConstant && kind != BufferKind::kArena) bound_buffers_.push_back(b);
  }
  for (const auto& step : image.steps) {
    first_.push_back(num_pointers_);
    for (const auto& operand : step.operands) add(image, operand);
  }
  first_.push_back(num_pointers_);
  predicate_.resize(image.nodes.size(), 0);
  for (std::size_t n = 0; n < image.nodes.size(); ++n) {
    const Node& node = image.nodes[n];
    if (node.kind != NodeKind::kRepeatWhile && node.kind != NodeKind::kIf &&
        node.kind != NodeKind::kSwitch)
      continue;
    predicate_[n] = num_pointers_;
    add(image, node.predicate);
  }
  const std::vector<bool> turns = turningBuffers(image);
  for (const Slot& slot : fixed_)
    if (turns[slot.buffer]) turning_[slot.buffer].push_back(slot);
}

void PointerTable::add(const Image& image, const OperandDesc& operand) {
  const Slot slot{num_pointers_++, operand.buffer,
                  operand.offset * static_cast<std::int64_t>(sizeOf(operand.type))};
  const BufferKind kind = image.buffers[operand.buffer].kind;
  const bool fixed = kind == BufferKind::kArena || kind == BufferKind::kConstant;
  (fixed ? fixed_ : bound_).push_back(slot);
}

ReplicaBindings::ReplicaBindings(const Image& image, const PointerTable& table,
                                 std::shared_ptr<DeviceMemory> memory)
    : image_(&image),
      table_(&table),
      memory_(std::move(memory)),
      bases_(image.buffers.size(), nullptr),
      pointers_(table.num_pointers_, nullptr) {
  for (std::uint32_t b = 0; b < image.buffers.size(); ++b) {
    const BufferDesc& buffer = image.buffers[b];
    if (buffer.kind != BufferKind::kConstant) continue;
    // Kernels take one pointer type for all operands; constants are only ever read.
    bases_[b] = const_cast<std::byte*>(image.constants.data()) + buffer.offset;  // NOLINT
  }
}

void ReplicaBindings::bind(const Arrays& arrays) {
  cycles = 0;
  bindArena();
  for (const std::uint32_t b : table_->bound_buffers_) {
    const BufferDesc& buffer = image_->buffers[b];
    if (buffer.kind == BufferKind::kInput) {
      bases_[b] =
          static_cast<std::byte*>(const_cast<void*>(arrays.inputs[buffer.input]));  // NOLINT
    } else if (buffer.kind == BufferKind::kOutput) {
      bases_[b] = static_cast<std::byte*>(arrays.outputs[buffer.output]);
    } else if (buffer.kind == BufferKind::kInputOutput) {
      bases_[b] = static_cast<std::byte*>(arrays.outputs[buffer.output]);
      if (arrays.inputs[buffer.input] != arrays.outputs[buffer.output] && buffer.bytes > 0)
        std::memcpy(bases_[b], arrays.inputs[buffer.input], buffer.bytes);
    }
  }
  for (const auto& slot : table_->bound_) point(slot);
}

void ReplicaBindings::bindArena() {
  std::byte* base = memory_->arena(image_->arena_bytes);
  if (base == arena_) return;
  arena_ = base;
  for (std::uint32_t b = 0; b < image_->buffers.size(); ++b) {
    const BufferDesc& buffer = image_->buffers[b];
    if (buffer.kind == BufferKind::kArena) bases_[b] = base + buffer.offset;
  }
  for (const auto& slot : table_->fixed_) point(slot);
}

void ReplicaBindings::exchange(std::uint64_t step, std::size_t operand, std::size_t other) {
  const auto& operands = image_->steps[step].operands;
  const std::uint32_t a = operands[operand].buffer;
  const std::uint32_t b = operands[other].buffer;
  std::swap(bases_[a], bases_[b]);
  for (const std::uint32_t buffer : {a, b})
    for (const auto& slot : table_->turning_[buffer]) point(slot);
}

bool ReplicaBindings::predicate(std::uint32_t node) const { return selector(node) != 0; }

std::int64_t ReplicaBindings::selector(std::uint32_t node) const {
  const std::byte* p = predicatePlace(node);
  if (sizeOf(image_->nodes[node].predicate.type) == 1)
    return *reinterpret_cast<const std::int8_t*>(p);
  std::int32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

}  // namespace ipujax::engine
