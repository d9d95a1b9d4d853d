#include "engine/build/TileAllocation.hpp"

#include <algorithm>

namespace ipujax::engine::build {
namespace {

constexpr unsigned kOperands = 8;  ///< bits of VertexMemory for operands
constexpr char kOwnBlock = 1;
constexpr char kInterleaved = 2;

const VertexMemory& needsOf(const StepDesc& step) { return step.cost.vertex_memory; }

TileMemory memoryOf(const Machine& machine) {
  TileMemory memory;
  memory.interleaved = machine.executable_bytes_per_tile;
  memory.end = machine.bytes_per_tile;
  memory.element_bytes = machine.memory_element_bytes;
  return memory;
}

std::uint64_t aligned(std::uint64_t bytes) {
  const std::uint64_t alignment = TileMemory().alignment;
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

TileAllocation::TileAllocation(const Draft& draft, const std::vector<Held>& held,
                               const std::vector<std::vector<Segment>>& times)
    : draft_(draft), held_(held), times_(times), held_as_(draft.storages.size()) {
  for (std::uint32_t h = 0; h < held.size(); ++h) held_as_[held[h].storage].push_back(h);
  if (!memoryOf(draft.graph->system.machine).hasElements()) return;
  for (std::uint32_t s = 0; s < draft.image.steps.size(); ++s)
    if (needsOf(draft.image.steps[s]).any() && !times[s].empty()) steps_.push_back(s);
}

std::uint64_t TileAllocation::bytesOn(const Held& held, std::uint32_t tile) const {
  const Variable& variable = draft_.graph->variables[held.variable];
  const auto& counts = variable.map->per_tile;
  return tile < counts.size() ? counts[tile] * sizeOf(variable.type) : 0;
}

std::uint32_t TileAllocation::heldOn(const OperandDesc& operand, std::uint32_t tile) const {
  for (const std::uint32_t h : held_as_[draft_.find(operand.buffer)])
    if (bytesOn(held_[h], tile) > 0) return h;
  return kNone;
}

/// Finds the variables on a tile that must be interleaved or kept apart from others.
void TileAllocation::findNeeds(std::uint32_t tile) {
  needs_.assign(held_.size(), 0);
  for (const std::uint32_t s : steps_) {
    const StepDesc& step = draft_.image.steps[s];
    const VertexMemory& needs = needsOf(step);
    const unsigned operands = needs.interleaved | needs.first | needs.second;
    for (unsigned i = 0; i < std::min<std::size_t>(kOperands, step.operands.size()); ++i) {
      if ((operands >> i & 1u) == 0) continue;
      const std::uint32_t h = heldOn(step.operands[i], tile);
      if (h == kNone) continue;
      needs_[h] |= kOwnBlock;
      if ((needs.interleaved >> i & 1u) != 0) needs_[h] |= kInterleaved;
    }
  }
}

std::uint32_t TileAllocation::addBlock(std::uint64_t bytes, const std::vector<Segment>& live) {
  if (bytes == 0) return kNone;
  blocks_.push_back({bytes, &live});
  return static_cast<std::uint32_t>(blocks_.size() - 1);
}

/// Returns the bytes of variables that are always live and have no needs: they precede the others.
std::uint64_t TileAllocation::addVariables(std::uint32_t tile) {
  std::uint64_t always = 0;
  block_of_.assign(held_.size(), kNone);
  for (std::size_t h = 0; h < held_.size(); ++h) {
    const std::uint64_t bytes = bytesOn(held_[h], tile);
    if (held_[h].always_live && needs_[h] == 0) {
      always += aligned(bytes);
      continue;
    }
    block_of_[h] = addBlock(bytes, held_[h].live);
    if (block_of_[h] != kNone) blocks_.back().interleaved = (needs_[h] & kInterleaved) != 0;
  }
  return always;
}

void TileAllocation::addTemporaries(std::size_t step) {
  const Cost& cost = draft_.image.steps[step].cost;
  const TileParts parts = temporariesOf(cost);
  const VertexMemory& needs = cost.vertex_memory;
  if (!needs.any()) {
    for (const std::uint64_t bytes : parts.bytes) addBlock(bytes, times_[step]);
    return;
  }
  // Additions to the plan's rearrangement, as for wider integers, count as the input's.
  const std::uint64_t rearranged = parts[TilePart::kRearrangement];
  const std::uint64_t received = parts[TilePart::kExchangeBuffers];
  const std::uint64_t weights_rearranged = std::min(needs.weights_rearranged_bytes, rearranged);
  const std::uint64_t weights_received = std::min(needs.weights_received_bytes, received);
  const std::array<std::uint64_t, 5> bytes = {parts[TilePart::kTemporaries],
                                              rearranged - weights_rearranged, weights_rearranged,
                                              received - weights_received, weights_received};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    temporaries_[step][i] = addBlock(bytes[i], times_[step]);
    if (bytes[i] > 0) blocks_.back().interleaved = (needs.interleaved >> (kOperands + i) & 1u) != 0;
  }
}

void TileAllocation::blocksOf(unsigned set, std::size_t step, std::uint32_t tile,
                              std::vector<std::uint32_t>& blocks) const {
  blocks.clear();
  const auto& operands = draft_.image.steps[step].operands;
  for (unsigned i = 0; i < std::min<std::size_t>(kOperands, operands.size()); ++i) {
    const std::uint32_t h = (set >> i & 1u) != 0 ? heldOn(operands[i], tile) : kNone;
    if (h != kNone && block_of_[h] != kNone) blocks.push_back(block_of_[h]);
  }
  for (unsigned i = 0; i < temporaries_[step].size(); ++i)
    if ((set >> (kOperands + i) & 1u) != 0 && temporaries_[step][i] != kNone)
      blocks.push_back(temporaries_[step][i]);
}

void TileAllocation::keepApart(std::uint32_t tile) {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> second;
  for (const std::uint32_t s : steps_) {
    const VertexMemory& needs = needsOf(draft_.image.steps[s]);
    blocksOf(needs.first, s, tile, first);
    blocksOf(needs.second, s, tile, second);
    for (const std::uint32_t a : first)
      for (const std::uint32_t b : second)
        if (a != b) apart_.emplace_back(a, b);
  }
}

std::uint64_t TileAllocation::bytesOf(std::uint32_t tile, std::uint64_t taken,
                                      const std::function<bool(std::size_t)>& has_temporaries) {
  blocks_.clear();
  apart_.clear();
  temporaries_.assign(times_.size(), {kNone, kNone, kNone, kNone, kNone});
  findNeeds(tile);
  const std::uint64_t always = addVariables(tile);
  for (std::size_t s = 0; s < times_.size(); ++s)
    if (has_temporaries(s)) addTemporaries(s);
  keepApart(tile);
  TileMemory memory = memoryOf(draft_.graph->system.machine);
  memory.first = aligned(taken) + always;
  return allocate(blocks_, memory, apart_);
}

}  // namespace ipujax::engine::build
