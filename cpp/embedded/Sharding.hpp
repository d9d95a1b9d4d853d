#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ipujax::embedded {

/// How an array lies in the replicas of a program: in blocks of one size, of which each replica has
/// one, and several may have the same.
struct Sharding {
  std::vector<std::int64_t> counts;  ///< of blocks along each dimension; empty: all have all of it
  std::vector<std::int32_t> blocks;  ///< the one that each replica has; row-major numbers
  bool operator==(const Sharding&) const = default;

  bool isWhole() const { return counts.empty(); }
  std::size_t numBlocks() const;
  /// Whether it is one of an array of this shape over so many replicas, each block on equally many.
  bool fits(const std::vector<std::int64_t>& shape, std::size_t num_replicas) const;
};

/// Copies between an array and the blocks of a sharding that fits it.
class ShardCopies {
 public:
  ShardCopies() = default;
  ShardCopies(Sharding sharding, const std::vector<std::int64_t>& shape, std::size_t block_bytes);

  const Sharding& sharding() const { return sharding_; }
  std::size_t wholeBytes() const { return block_bytes_ * sharding_.numBlocks(); }
  std::size_t blockBytes() const { return block_bytes_; }
  /// Where the replica's block begins in the array, if it lies there in one piece.
  std::optional<std::size_t> pieceOf(std::size_t replica) const;
  /// Whether no replica before it has the same block.
  bool isFirst(std::size_t replica) const;
  void take(const std::byte* whole, std::size_t replica, std::byte* block) const;
  void put(const std::byte* block, std::size_t replica, std::byte* whole) const;

 private:
  /// f(offset in the whole, offset in the block) for each run of `run_bytes_`.
  template <class F>
  void forEachRun(std::size_t replica, const F& f) const;
  std::vector<std::size_t> begin(std::size_t replica) const;

  Sharding sharding_;
  std::size_t block_bytes_ = 0;
  std::size_t run_bytes_ = 0;         // of a block that are together in the array
  std::vector<std::size_t> extents_;  // of a block, up to the last dimension that is sharded
  std::vector<std::size_t> strides_;  // of the array, in bytes, of the same dimensions
};

}  // namespace ipujax::embedded
