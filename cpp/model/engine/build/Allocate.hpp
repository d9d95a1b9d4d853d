#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ipujax::engine::build {

/// Live time of a storage, in half positions: a step at p reads at 2p and writes at 2p + 1.
struct Segment {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< inclusive
};

/// Memory that needs one address for as long as it is live.
struct Block {
  std::uint64_t bytes = 0;
  const std::vector<Segment>* live = nullptr;  ///< sorted, disjoint
  bool interleaved = false;                    ///< must lie in interleaved memory
  std::uint64_t offset = 0;                    ///< found by `allocate`
};

/// Two blocks, by number, that must not share a memory element.
using BlockPair = std::pair<std::uint32_t, std::uint32_t>;

/// The memory of a tile. Elements of interleaved memory are twice as large.
struct TileMemory {
  std::uint64_t alignment = 8;
  std::uint64_t first = 0;        ///< address for blocks; memory before it is taken
  std::uint64_t interleaved = 0;  ///< where interleaved memory begins
  std::uint64_t end = 0;
  std::uint64_t element_bytes = 0;  ///< 0: no elements, no interleaved memory

  bool hasElements() const { return element_bytes > 0 && interleaved < end; }
};

inline std::uint64_t roundedUp(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Up to this many blocks, a table tells which are live together; it has a bit for each pair.
constexpr std::size_t kMostInTable = 2048;

/// Gives blocks that are live at the same time disjoint addresses, each a multiple of `alignment`.
/// Places the largest first, at the lowest address that is free for all of its life and meets the
/// vertices' constraints on memory elements; if that leaves gaps, tries other orders.
/// Returns the bytes that are needed: up to the highest address, less what is free at the end of
/// the memory that is not interleaved, unless the highest address is past the end.
std::uint64_t allocate(std::vector<Block>& blocks, const TileMemory& memory,
                       const std::vector<BlockPair>& apart = {},
                       std::size_t most_in_table = kMostInTable);

}  // namespace ipujax::engine::build
