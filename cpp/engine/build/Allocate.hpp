#pragma once
#include <cstdint>
#include <vector>

namespace ipujax::engine::build {

/// Live time of a storage, in half positions: a step at p reads at 2p and writes at 2p + 1.
struct Segment {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< inclusive
};

/// What needs one address for as long as it is live.
struct Block {
  std::uint64_t bytes = 0;
  const std::vector<Segment>* live = nullptr;  ///< sorted, apart
  std::uint64_t offset = 0;                    ///< found by `allocate`
};

/// Gives blocks that are live at one time addresses apart, each a multiple of `alignment`: the
/// largest first, at the lowest address that is free for all of its life; where that leaves gaps,
/// the longest-lived first if it is better.
/// Returns the bytes that they need together.
std::uint64_t allocate(std::vector<Block>& blocks, std::uint64_t alignment);

}  // namespace ipujax::engine::build
