#include "engine/build/Allocate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace ipujax::engine::build {
namespace {

constexpr unsigned kMostLevels = 10;
constexpr std::uint64_t kGapsAllowed = 100;   ///< one part in 100: no other order is tried
constexpr std::uint64_t kWideAlignment = 16;  ///< of what is read 16 bytes at a time

/// Segments that have an address, in a binary tree over time: each in the smallest node that has
/// all of it. What is live in a time is in nodes that meet that time. It has about a leaf for each
/// block: more would only be empty.
class PlacedSegments {
 public:
  PlacedSegments(std::uint64_t last, std::size_t num_blocks)
      : levels_(std::clamp(static_cast<unsigned>(std::bit_width(num_blocks)), 1U, kMostLevels)) {
    while (last >> shift_ >> (levels_ - 1) != 0) ++shift_;
    while (levels_ > 1 && last >> shift_ >> (levels_ - 2) == 0) --levels_;
    for (unsigned level = 0; level < levels_; ++level)
      nodes_[level].resize(std::size_t{1} << (levels_ - 1 - level));
  }

  void add(const Segment& live, std::uint32_t block) {
    const std::uint64_t differs = live.begin >> shift_ ^ live.end >> shift_;
    const auto level = static_cast<unsigned>(std::bit_width(differs));
    nodes_[level][live.begin >> shift_ >> level].push_back({live, block});
  }

  /// Calls fn(block) for what is live at some time of a segment.
  template <class F>
  void forEach(const Segment& live, const F& fn) const {
    for (unsigned level = 0; level < levels_; ++level) {
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
  unsigned levels_;
  std::array<std::vector<std::vector<Entry>>, kMostLevels> nodes_;
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

/// For each block those that it shares no memory element with.
class Partners {
 public:
  Partners(std::size_t blocks, const std::vector<BlockPair>& apart) : begins_(blocks + 1) {
    for (const auto& [a, b] : apart) {
      ++begins_[a + 1];
      ++begins_[b + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    all_.resize(begins_.back());
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (const auto& [a, b] : apart) {
      all_[next[a]++] = b;
      all_[next[b]++] = a;
    }
  }

  std::span<const std::uint32_t> of(std::size_t block) const {
    return {all_.data() + begins_[block], begins_[block + 1] - begins_[block]};
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> all_;
};

class Allocator {
 public:
  Allocator(std::vector<Block>& blocks, const TileMemory& memory,
            const std::vector<BlockPair>& apart)
      : blocks_(blocks),
        memory_(memory),
        last_(lastTime(blocks)),
        partners_(blocks.size(), memory.hasElements() ? apart : std::vector<BlockPair>()) {}

  /// Each at the lowest address that is free for all of its life; stops once `enough` is needed.
  std::uint64_t inOrder(const std::vector<std::size_t>& order,
                        std::uint64_t enough = std::numeric_limits<std::uint64_t>::max()) {
    PlacedSegments placed(last_, blocks_.size());
    met_by_.assign(blocks_.size(), blocks_.size());
    kept_from_.assign(blocks_.size(), blocks_.size());
    tops_ = {memory_.first, memory_.first};
    for (const std::size_t i : order) {
      if (blocks_[i].bytes == 0) continue;
      collectTaken(placed, i);
      place(i);
      if (tops_.needed(memory_) >= enough) break;
      for (const Segment& live : *blocks_[i].live) placed.add(live, static_cast<std::uint32_t>(i));
    }
    return tops_.needed(memory_);
  }

 private:
  std::uint64_t bytesOf(std::size_t block) const {
    return roundedUp(blocks_[block].bytes, memory_.alignment);
  }

  /// Addresses that a block cannot have: of those live with it, up to the ends of their elements
  /// for those that it shares none with.
  void collectTaken(const PlacedSegments& placed, std::size_t block) {
    taken_.clear();
    for (const std::uint32_t other : partners_.of(block)) kept_from_[other] = block;
    for (const Segment& live : *blocks_[block].live) {
      placed.forEach(live, [&](std::uint32_t other) {
        if (std::exchange(met_by_[other], block) == block) return;
        const std::uint64_t from = blocks_[other].offset;
        const std::uint64_t to = from + bytesOf(other);
        if (kept_from_[other] == block)
          taken_.emplace_back(elementOf(from).first, elementOf(to - 1).second);
        else
          taken_.emplace_back(from, to);
      });
    }
    std::ranges::sort(taken_);
  }

  std::pair<std::uint64_t, std::uint64_t> elementOf(std::uint64_t address) const {
    const bool is_interleaved = address >= memory_.interleaved;
    const std::uint64_t start = is_interleaved ? memory_.interleaved : 0;
    const std::uint64_t bytes = memory_.element_bytes * (is_interleaved ? 2 : 1);
    const std::uint64_t from = start + (address - start) / bytes * bytes;
    return {from, from + bytes};
  }

  /// At the lowest address; a block with partners in interleaved memory if less is needed so, since
  /// no element is half in it.
  void place(std::size_t i) {
    const bool interleaved = blocks_[i].interleaved && memory_.hasElements();
    const std::uint64_t alignment = interleaved ? kWideAlignment : memory_.alignment;
    const std::uint64_t bytes = bytesOf(i);
    const auto lowest = [&](std::uint64_t offset) {
      for (const auto& [from, to] : taken_) {
        if (from >= offset + bytes) break;
        offset = std::max(offset, roundedUp(to, alignment));
      }
      return offset;
    };
    const std::uint64_t start = roundedUp(memory_.first, alignment);
    const std::uint64_t start_interleaved = std::max(start, memory_.interleaved);
    std::uint64_t offset = lowest(interleaved ? start_interleaved : start);
    if (!interleaved && !partners_.of(i).empty()) {
      const std::uint64_t other = lowest(start_interleaved);
      if (with(other, bytes).needed(memory_) < with(offset, bytes).needed(memory_)) offset = other;
    }
    blocks_[i].offset = offset;
    tops_ = with(offset, bytes);
  }

  struct Tops {
    std::uint64_t all;
    std::uint64_t ordinary;  ///< of what begins in memory that is not interleaved

    std::uint64_t needed(const TileMemory& memory) const {
      const bool gap = memory.hasElements() && all > memory.interleaved && all <= memory.end &&
                       ordinary < memory.interleaved;
      return gap ? all - (memory.interleaved - ordinary) : all;
    }
  };

  Tops with(std::uint64_t offset, std::uint64_t bytes) const {
    Tops tops = tops_;
    tops.all = std::max(tops.all, offset + bytes);
    if (offset < memory_.interleaved) tops.ordinary = std::max(tops.ordinary, offset + bytes);
    return tops;
  }

  std::vector<Block>& blocks_;
  const TileMemory& memory_;
  std::uint64_t last_;
  Partners partners_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  ///< addresses
  std::vector<std::size_t> met_by_;                             ///< the last block that met each
  std::vector<std::size_t> kept_from_;  ///< the last that shares no element with each
  Tops tops_{};
};

}  // namespace

std::uint64_t allocate(std::vector<Block>& blocks, const TileMemory& memory,
                       const std::vector<BlockPair>& apart) {
  const std::uint64_t least = mostLive(blocks, memory.alignment);
  Allocator allocator(blocks, memory, apart);
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](auto i) { return blocks[i].bytes; });
  std::uint64_t best = allocator.inOrder(order);
  const auto isTight = [&] { return best - memory.first - least <= least / kGapsAllowed; };
  const auto tryOrder = [&] {
    std::vector<Block> before = blocks;
    const std::uint64_t found = allocator.inOrder(order, best);
    if (found >= best) blocks = std::move(before);
    best = std::min(best, found);
  };
  if (isTight()) return best;
  if (std::ranges::any_of(blocks, &Block::interleaved)) {
    // What has less of memory to choose from comes first.
    std::ranges::stable_sort(order, std::greater{}, [&](auto i) { return blocks[i].interleaved; });
    tryOrder();
    if (isTight()) return best;
  }
  std::ranges::stable_sort(order, std::greater{},
                           [&](auto i) { return lengthOf(*blocks[i].live); });
  tryOrder();
  return best;
}

}  // namespace ipujax::engine::build
