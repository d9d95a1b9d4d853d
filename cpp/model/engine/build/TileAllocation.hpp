#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/build/Allocate.hpp"
#include "engine/build/Draft.hpp"
#include "engine/build/Held.hpp"

namespace ipujax::engine::build {

/// Allocates addresses for a tile's variables and for the temporaries of its steps.
class TileAllocation {
 public:
  /// `times` are the moments of each step.
  TileAllocation(const Draft& draft, const std::vector<Held>& held,
                 const std::vector<std::vector<Segment>>& times);

  /// Bytes that the tile needs, with `taken` bytes at its lowest addresses. `has_temporaries` tells
  /// whether the tile has temporaries of a step.
  std::uint64_t bytesOf(std::uint32_t tile, std::uint64_t taken,
                        const std::function<bool(std::size_t)>& has_temporaries);
  std::size_t numBlocks() const { return blocks_.size(); }  ///< of the last tile

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint64_t bytesOn(const Held& held, std::uint32_t tile) const;
  std::uint32_t heldOn(const OperandDesc& operand, std::uint32_t tile) const;
  void findNeeds(std::uint32_t tile);
  std::uint64_t addVariables(std::uint32_t tile);
  void addTemporaries(std::size_t step);
  std::uint32_t addBlock(std::uint64_t bytes, const std::vector<Segment>& live);
  void keepApart(std::uint32_t tile);
  void blocksOf(unsigned set, std::size_t step, std::uint32_t tile,
                std::vector<std::uint32_t>& blocks) const;

  const Draft& draft_;
  const std::vector<Held>& held_;
  const std::vector<std::vector<Segment>>& times_;
  std::vector<std::uint32_t> steps_;                 ///< with constraints on memory elements
  std::vector<std::vector<std::uint32_t>> held_as_;  ///< by storage: indices into held_
  // Of the current tile:
  std::vector<Block> blocks_;
  std::vector<BlockPair> apart_;
  std::vector<char> needs_;              ///< by index into held_: 1: own block, 2: interleaved
  std::vector<std::uint32_t> block_of_;  ///< by index into held_
  /// By step: blocks of its temporaries, in the order of the bits of VertexMemory.
  std::vector<std::array<std::uint32_t, 5>> temporaries_;
};

}  // namespace ipujax::engine::build
