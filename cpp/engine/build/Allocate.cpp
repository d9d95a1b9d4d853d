#include "engine/build/Allocate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

namespace ipujax::engine::build {
namespace {

constexpr unsigned kLevels = 10;
constexpr std::uint64_t kGapsAllowed = 100;  ///< one part in 100: no other order is tried

/// Segments that have an address, in a binary tree over time: each in the smallest node that has
/// all of it. What is live in a time is in nodes that meet that time.
class PlacedSegments {
 public:
  explicit PlacedSegments(std::uint64_t last) {
    while (last >> shift_ >> (kLevels - 1) != 0) ++shift_;
    for (unsigned level = 0; level < kLevels; ++level)
      nodes_[level].resize(std::size_t{1} << (kLevels - 1 - level));
  }

  void add(const Segment& live, std::uint32_t block) {
    const std::uint64_t differs = live.begin >> shift_ ^ live.end >> shift_;
    const auto level = static_cast<unsigned>(std::bit_width(differs));
    nodes_[level][live.begin >> shift_ >> level].push_back({live, block});
  }

  /// Calls fn(block) for what is live at some time of a segment.
  template <class F>
  void forEach(const Segment& live, const F& fn) const {
    for (unsigned level = 0; level < kLevels; ++level) {
      const auto& nodes = nodes_[level];
      const std::uint64_t last = live.end >> shift_ >> level;
      for (std::uint64_t i = live.begin >> shift_ >> level; i <= last; ++i)
        for (const Entry& e : nodes[i])
          if (e.live.begin <= live.end && live.begin <= e.live.end) fn(e.block);
    }
  }

 private:
  struct Entry {
    Segment live;
    std::uint32_t block;
  };
  unsigned shift_ = 0;
  std::array<std::vector<std::vector<Entry>>, kLevels> nodes_;
};

std::uint64_t roundedUp(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::uint64_t lastTime(const std::vector<Block>& blocks) {
  std::uint64_t last = 0;
  for (const Block& block : blocks)
    if (!block.live->empty()) last = std::max(last, block.live->back().end);
  return last;
}

std::uint64_t lengthOf(const std::vector<Segment>& live) {
  std::uint64_t length = 0;
  for (const Segment& segment : live) length += segment.end - segment.begin + 1;
  return length;
}

/// Most bytes that are live at one time: no addresses need less.
std::uint64_t mostLive(const std::vector<Block>& blocks, std::uint64_t alignment) {
  struct Change {
    std::uint64_t time;
    std::uint64_t bytes;  ///< in two's complement
  };
  std::vector<Change> changes;
  for (const Block& block : blocks) {
    const std::uint64_t bytes = roundedUp(block.bytes, alignment);
    for (const Segment& live : *block.live) {
      changes.push_back({live.begin, bytes});
      changes.push_back({live.end + 1, -bytes});
    }
  }
  // What ends comes first: as unsigned numbers, negative ones are the largest.
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.bytes > b.bytes;
  });
  std::uint64_t now = 0;
  std::uint64_t most = 0;
  for (const Change& change : changes) most = std::max(most, now += change.bytes);
  return most;
}

/// Each at the lowest address that is free for all of its life.
std::uint64_t allocateInOrder(std::vector<Block>& blocks, const std::vector<std::size_t>& order,
                              std::uint64_t alignment) {
  PlacedSegments placed(lastTime(blocks));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;  // addresses
  std::vector<std::size_t> met_by(blocks.size(), blocks.size());
  std::uint64_t top = 0;
  for (const std::size_t i : order) {
    Block& block = blocks[i];
    const std::uint64_t bytes = roundedUp(block.bytes, alignment);
    if (bytes == 0) continue;
    taken.clear();
    for (const Segment& live : *block.live) {
      placed.forEach(live, [&](std::uint32_t other) {
        if (std::exchange(met_by[other], i) == i) return;
        const std::uint64_t from = blocks[other].offset;
        taken.emplace_back(from, from + roundedUp(blocks[other].bytes, alignment));
      });
    }
    std::ranges::sort(taken);
    std::uint64_t offset = 0;
    for (const auto& [from, to] : taken) {
      if (from >= offset + bytes) break;
      offset = std::max(offset, to);
    }
    block.offset = offset;
    top = std::max(top, offset + bytes);
    for (const Segment& live : *block.live) placed.add(live, static_cast<std::uint32_t>(i));
  }
  return top;
}

}  // namespace

std::uint64_t allocate(std::vector<Block>& blocks, std::uint64_t alignment) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](auto i) { return blocks[i].bytes; });
  const std::uint64_t top = allocateInOrder(blocks, order, alignment);
  const std::uint64_t least = mostLive(blocks, alignment);
  if (top - least <= least / kGapsAllowed) return top;
  std::ranges::stable_sort(order, std::greater{},
                           [&](auto i) { return lengthOf(*blocks[i].live); });
  std::vector<Block> others = blocks;
  const std::uint64_t other_top = allocateInOrder(others, order, alignment);
  if (other_top < top) blocks = std::move(others);
  return std::min(top, other_top);
}

}  // namespace ipujax::engine::build
