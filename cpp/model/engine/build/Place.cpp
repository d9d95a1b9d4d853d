#include <algorithm>
#include <limits>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {
namespace {

constexpr std::uint64_t kAlignment = 64;  // one cache line, one AVX-512 vector

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Gives each block its own memory. Returns the arena's size.
std::uint64_t assignApart(std::vector<Block>& blocks) {
  std::uint64_t top = 0;
  for (Block& block : blocks) {
    block.offset = top;
    top += aligned(block.bytes);
  }
  return top;
}

BufferKind kindOf(const Storage& storage) {
  if (storage.constant) return BufferKind::kConstant;
  if (storage.input >= 0)
    return storage.output >= 0 ? BufferKind::kInputOutput : BufferKind::kInput;
  return storage.output >= 0 ? BufferKind::kOutput : BufferKind::kArena;
}

std::uint64_t placeConstant(Image& image, const std::vector<std::byte>& values) {
  const std::uint64_t offset = aligned(image.constants.size());
  image.constants.resize(offset);
  image.constants.insert(image.constants.end(), values.begin(), values.end());
  return offset;
}

void dropRemovedSteps(Draft& draft) {
  Image& image = draft.image;
  std::vector<std::uint64_t> renamed(image.steps.size());
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < image.steps.size(); ++i) {
    renamed[i] = n;
    if (draft.step_removed[i]) continue;
    if (n != i) image.steps[n] = std::move(image.steps[i]);
    ++n;
  }
  image.steps.resize(n);
  const auto gone = [&](std::uint32_t child) {
    const Node& node = image.nodes[child];
    return node.kind == NodeKind::kStep && draft.step_removed[node.value];
  };
  for (auto& node : image.nodes) {
    if (node.kind == NodeKind::kSequence) std::erase_if(node.children, gone);
  }
  for (auto& node : image.nodes) {
    if (node.kind != NodeKind::kStep) continue;
    if (draft.step_removed[node.value]) {
      node = Node();  // no parent is left
    } else {
      node.value = renamed[node.value];
    }
  }
}

}  // namespace

void placeStorages(Draft& draft) {
  Image& image = draft.image;
  dropRemovedSteps(draft);
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> buffer_of(draft.storages.size(), kNone);
  std::vector<std::uint32_t> in_arena;
  const auto bufferOf = [&](std::uint32_t operand) {
    const std::uint32_t s = draft.find(operand);
    if (buffer_of[s] != kNone) return buffer_of[s];
    const Storage& storage = draft.storages[s];
    BufferDesc buffer;
    buffer.kind = kindOf(storage);
    buffer.bytes = storage.bytes;
    buffer.input = static_cast<std::uint32_t>(std::max(storage.input, 0));
    buffer.output = static_cast<std::uint32_t>(std::max(storage.output, 0));
    if (buffer.kind == BufferKind::kConstant)
      buffer.offset = placeConstant(image, draft.graph->variables[storage.variable].values);
    const auto& live = draft.live[s];
    if (buffer.kind == BufferKind::kArena && !live.empty()) in_arena.push_back(s);
    buffer_of[s] = static_cast<std::uint32_t>(image.buffers.size());
    image.buffers.push_back(buffer);
    return buffer_of[s];
  };
  for (auto& step : image.steps) {
    for (auto& operand : step.operands) operand.buffer = bufferOf(operand.buffer);
  }
  for (auto& node : image.nodes) {
    if (node.kind == NodeKind::kRepeatWhile || node.kind == NodeKind::kIf ||
        node.kind == NodeKind::kSwitch)
      node.predicate.buffer = bufferOf(node.predicate.buffer);
  }
  // Results and parameters that no step touches must still be bound.
  for (std::uint32_t s = 0; s < draft.storages.size(); ++s) {
    if (draft.find(s) == s && (draft.storages[s].input >= 0 || draft.storages[s].output >= 0))
      bufferOf(s);
  }
  // From first to last use: memory on the host is not shared in between.
  std::vector<std::vector<Segment>> lives;
  for (const std::uint32_t s : in_arena)
    lives.push_back({{draft.live[s].front().begin & ~std::uint64_t{1}, draft.live[s].back().end}});
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < in_arena.size(); ++i)
    blocks.push_back({draft.storages[in_arena[i]].bytes, &lives[i]});
  image.arena_bytes = image.mechanisms.has(Mechanism::kPlaces)
                          ? allocate(blocks, {.alignment = kAlignment})
                          : assignApart(blocks);
  for (std::size_t i = 0; i < in_arena.size(); ++i)
    image.buffers[buffer_of[in_arena[i]]].offset = blocks[i].offset;
  for (auto& buffer : image.buffers) {
    if (buffer.kind == BufferKind::kArena && buffer.offset + buffer.bytes > image.arena_bytes)
      image.arena_bytes = aligned(buffer.offset + buffer.bytes);
  }
}

}  // namespace ipujax::engine::build
