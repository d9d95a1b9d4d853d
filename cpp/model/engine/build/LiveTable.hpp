#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/build/Allocate.hpp"

namespace ipujax::engine::build {

/// Maximum bytes of blocks live at the same time: no allocation needs less.
std::uint64_t mostLive(const std::vector<Block>& blocks, std::uint64_t alignment);

/// For each block, the set of blocks that are live at some time with it: one bit for each pair of
/// blocks.
class LiveTable {
 public:
  LiveTable(const std::vector<Block>& blocks, std::uint64_t alignment);

  /// See the function of this name.
  std::uint64_t mostLive() const { return most_live_; }
  /// 64 blocks per word; the block itself is not in its set.
  std::span<const std::uint64_t> liveWith(std::size_t block) const {
    return {bits_.data() + block * num_words_, num_words_};
  }

 private:
  std::size_t num_words_;
  std::vector<std::uint64_t> bits_;
  std::uint64_t most_live_ = 0;
};

}  // namespace ipujax::engine::build
