#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ipujax::embedded {

/// How an array is split over the replicas of a program: into blocks of one size. Each replica has
/// one block, and several replicas may have the same.
struct Sharding {
  std::vector<std::int64_t> counts;  ///< blocks along each dimension; empty: all replicas have all
  std::vector<std::int32_t> blocks;  ///< of each replica, numbered row-major
  bool operator==(const Sharding&) const = default;

  bool isWhole() const { return counts.empty(); }
  std::size_t numBlocks() const;
  /// Whether it splits an array of this shape over `num_replicas`, each block on equally many.
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
  /// The offset of the replica's block in the array, if the block is contiguous there.
  std::optional<std::size_t> pieceOf(std::size_t replica) const;
  /// Whether no earlier replica has the same block.
  bool isFirst(std::size_t replica) const;
  void take(const std::byte* whole, std::size_t replica, std::byte* block) const;
  void put(const std::byte* block, std::size_t replica, std::byte* whole) const;

 private:
  /// Calls f(offset in the whole, offset in the block) for each run of `run_bytes_`.
  template <class F>
  void forEachRun(std::size_t replica, const F& f) const;
  std::vector<std::size_t> begin(std::size_t replica) const;

  Sharding sharding_;
  std::size_t block_bytes_ = 0;
  std::size_t run_bytes_ = 0;         // of a block, contiguous in the array
  std::vector<std::size_t> extents_;  // of a block, up to the last dimension that is sharded
  std::vector<std::size_t> strides_;  // of the array, in bytes, of the same dimensions
};

}  // namespace ipujax::embedded
