#include <algorithm>
#include <limits>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {
namespace {

constexpr std::uint64_t kAlignment = 64;  // one cache line, one AVX-512 vector

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A storage in the arena: live over [begin, end] in half positions.
struct Block {
  std::uint32_t storage;
  std::uint64_t bytes;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t offset = 0;
};

/// Each in a place of its own. Returns the arena's size.
std::uint64_t assignApart(std::vector<Block>& blocks) {
  std::uint64_t top = 0;
  for (Block& block : blocks) {
    block.offset = top;
    top += block.bytes;
  }
  return top;
}

/// Largest first, each at the lowest offset free for all of its life. Returns the arena's size.
std::uint64_t assignOffsets(std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  std::uint64_t top = 0;
  for (const std::size_t i : order) {
    Block& block = blocks[i];
    std::uint64_t offset = 0;
    for (const std::size_t k : placed) {
      const Block& other = blocks[k];
      if (other.begin > block.end || block.begin > other.end) continue;
      if (other.offset >= offset + block.bytes) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    block.offset = offset;
    top = std::max(top, offset + block.bytes);
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](std::uint64_t value, std::size_t k) { return value < blocks[k].offset; });
    placed.insert(at, i);
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
  std::vector<Block> blocks;
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
    if (buffer.kind == BufferKind::kArena && !live.empty())
      blocks.push_back(
          {s, aligned(storage.bytes), live.front().begin & ~std::uint64_t{1}, live.back().end});
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
  image.arena_bytes =
      image.mechanisms.has(Mechanism::kPlaces) ? assignOffsets(blocks) : assignApart(blocks);
  for (const auto& block : blocks) image.buffers[buffer_of[block.storage]].offset = block.offset;
  for (auto& buffer : image.buffers) {
    if (buffer.kind == BufferKind::kArena && buffer.offset + buffer.bytes > image.arena_bytes)
      image.arena_bytes = aligned(buffer.offset + buffer.bytes);
  }
}

}  // namespace ipujax::engine::build
