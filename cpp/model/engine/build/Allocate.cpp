#include "engine/build/Allocate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "engine/build/LiveTable.hpp"

namespace ipujax::engine::build {
namespace {

constexpr unsigned kMostLevels = 10;
constexpr std::uint64_t kGapsAllowed = 100;   ///< one part in 100: no other order is tried
constexpr std::uint64_t kWideAlignment = 16;  ///< of blocks read 16 bytes at a time

std::uint64_t lastTime(const std::vector<Block>& blocks) {
  std::uint64_t last = 0;
  for (const Block& block : blocks)
    if (!block.live->empty()) last = std::max(last, block.live->back().end);
  return last;
}

/// Live segments of placed blocks in a binary tree over time, each in the smallest node that
/// contains it. Segments live at a time are in the nodes that overlap it. The tree has about one
/// leaf per block: more leaves would be empty.
class PlacedSegments {
 public:
  explicit PlacedSegments(const std::vector<Block>& blocks)
      : blocks_(blocks),
        levels_(std::clamp(static_cast<unsigned>(std::bit_width(blocks.size())), 1U, kMostLevels)),
        met_by_(blocks.size(), blocks.size()) {
    const std::uint64_t last = lastTime(blocks);
    while (last >> shift_ >> (levels_ - 1) != 0) ++shift_;
    while (levels_ > 1 && last >> shift_ >> (levels_ - 2) == 0) --levels_;
    for (unsigned level = 0; level < levels_; ++level)
      nodes_[level].resize(std::size_t{1} << (levels_ - 1 - level));
  }

  void add(std::size_t block) {
    for (const Segment& live : *blocks_[block].live) {
      const std::uint64_t differs = live.begin >> shift_ ^ live.end >> shift_;
      const auto level = static_cast<unsigned>(std::bit_width(differs));
      nodes_[level][live.begin >> shift_ >> level].push_back(
          {live, static_cast<std::uint32_t>(block)});
    }
  }

  /// Calls fn(other) once for each placed block that is live at some time with the block.
  template <class F>
  void forEach(std::size_t block, const F& fn) {
    for (const Segment& live : *blocks_[block].live)
      forEachAt(live, [&](std::uint32_t other) {
        if (std::exchange(met_by_[other], block) != block) fn(other);
      });
  }

 private:
  struct Entry {
    Segment live;
    std::uint32_t block;
  };

  template <class F>
  void forEachAt(const Segment& live, const F& fn) const {
    for (unsigned level = 0; level < levels_; ++level) {
      const auto& nodes = nodes_[level];
      const std::uint64_t last = live.end >> shift_ >> level;
      for (std::uint64_t i = live.begin >> shift_ >> level; i <= last; ++i)
        for (const Entry& e : nodes[i])
          if (e.live.begin <= live.end && live.begin <= e.live.end) fn(e.block);
    }
  }

  const std::vector<Block>& blocks_;
  unsigned shift_ = 0;
  unsigned levels_;
  std::array<std::vector<std::vector<Entry>>, kMostLevels> nodes_;
  std::vector<std::size_t> met_by_;  ///< the last block that met each
};

/// Placed blocks as bits, for use with a LiveTable.
class PlacedBits {
 public:
  PlacedBits(const LiveTable& table, std::size_t num_blocks)
      : table_(table), placed_((num_blocks + 63) / 64) {}

  void add(std::size_t block) { placed_[block / 64] |= std::uint64_t{1} << block % 64; }

  /// Calls fn(other) once for each placed block that is live at some time with the block.
  template <class F>
  void forEach(std::size_t block, const F& fn) const {
    const auto live = table_.liveWith(block);
    for (std::size_t w = 0; w < placed_.size(); ++w)
      for (std::uint64_t rest = live[w] & placed_[w]; rest != 0; rest &= rest - 1)
        fn(static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(rest)));
  }

 private:
  const LiveTable& table_;
  std::vector<std::uint64_t> placed_;
};

std::uint64_t lengthOf(const std::vector<Segment>& live) {
  std::uint64_t length = 0;
  for (const Segment& segment : live) length += segment.end - segment.begin + 1;
  return length;
}

/// For each block, the blocks that it must not share a memory element with.
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
            const std::vector<BlockPair>& apart, const LiveTable* table)
      : blocks_(blocks),
        memory_(memory),
        table_(table),
        partners_(blocks.size(), memory.hasElements() ? apart : std::vector<BlockPair>()) {}

  /// Places blocks, each at the lowest address that is free for all of its life; stops once they
  /// need `enough` bytes.
  std::uint64_t inOrder(const std::vector<std::size_t>& order,
                        std::uint64_t enough = std::numeric_limits<std::uint64_t>::max()) {
    if (table_) return inOrder(order, enough, PlacedBits(*table_, blocks_.size()));
    return inOrder(order, enough, PlacedSegments(blocks_));
  }

 private:
  template <class Placed>
  std::uint64_t inOrder(const std::vector<std::size_t>& order, std::uint64_t enough,
                        Placed placed) {
    kept_from_.assign(blocks_.size(), blocks_.size());
    tops_ = {memory_.first, memory_.first};
    for (const std::size_t i : order) {
      if (blocks_[i].bytes == 0) continue;
      collectTaken(placed, i);
      place(i);
      if (tops_.needed(memory_) >= enough) break;
      placed.add(i);
    }
    return tops_.needed(memory_);
  }

  std::uint64_t bytesOf(std::size_t block) const {
    return roundedUp(blocks_[block].bytes, memory_.alignment);
  }

  /// Collects the addresses that a block cannot have: those of blocks live with it; of partners,
  /// their whole memory elements.
  template <class Placed>
  void collectTaken(Placed& placed, std::size_t block) {
    taken_.clear();
    for (const std::uint32_t other : partners_.of(block)) kept_from_[other] = block;
    placed.forEach(block, [&](std::uint32_t other) {
      const std::uint64_t from = blocks_[other].offset;
      const std::uint64_t to = from + bytesOf(other);
      if (kept_from_[other] == block)
        taken_.emplace_back(elementOf(from).first, elementOf(to - 1).second);
      else
        taken_.emplace_back(from, to);
    });
    std::ranges::sort(taken_);
  }

  std::pair<std::uint64_t, std::uint64_t> elementOf(std::uint64_t address) const {
    const bool is_interleaved = address >= memory_.interleaved;
    const std::uint64_t start = is_interleaved ? memory_.interleaved : 0;
    const std::uint64_t bytes = memory_.element_bytes * (is_interleaved ? 2 : 1);
    const std::uint64_t from = start + (address - start) / bytes * bytes;
    return {from, from + bytes};
  }

  /// Uses the lowest address. A block with partners goes to interleaved memory, whose start no
  /// element straddles, if fewer bytes are needed then.
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
    std::uint64_t ordinary;  ///< of blocks that begin in memory that is not interleaved

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
  const LiveTable* table_;  ///< null if there are too many blocks
  Partners partners_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  ///< addresses
  std::vector<std::size_t> kept_from_;  ///< the last block that must share no element with each
  Tops tops_{};
};

}  // namespace

std::uint64_t allocate(std::vector<Block>& blocks, const TileMemory& memory,
                       const std::vector<BlockPair>& apart, std::size_t most_in_table) {
  std::optional<LiveTable> table;
  if (blocks.size() <= most_in_table) table.emplace(blocks, memory.alignment);
  const std::uint64_t least = table ? table->mostLive() : mostLive(blocks, memory.alignment);
  Allocator allocator(blocks, memory, apart, table ? &*table : nullptr);
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
    // Blocks with less memory to choose from come first.
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
