#include "embedded/Sharding.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ipujax::embedded {

std::size_t Sharding::numBlocks() const {
  std::size_t number = 1;
  for (const auto count : counts) number *= static_cast<std::size_t>(count);
  return number;
}

bool Sharding::fits(const std::vector<std::int64_t>& shape, std::size_t num_replicas) const {
  if (counts.empty()) return blocks.empty();
  if (counts.size() != shape.size() || blocks.size() != num_replicas) return false;
  std::size_t number = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (counts[d] < 1 || shape[d] % counts[d] != 0) return false;
    if (static_cast<std::size_t>(counts[d]) > num_replicas / number) return false;
    number *= static_cast<std::size_t>(counts[d]);
  }
  std::vector<std::size_t> holders(number, 0);
  for (const auto block : blocks) {
    if (block < 0 || static_cast<std::size_t>(block) >= number) return false;
    ++holders[static_cast<std::size_t>(block)];
  }
  return std::ranges::all_of(holders, [&](std::size_t n) { return n * number == num_replicas; });
}

ShardCopies::ShardCopies(Sharding sharding, const std::vector<std::int64_t>& shape,
                         std::size_t block_bytes)
    : sharding_(std::move(sharding)), block_bytes_(block_bytes), run_bytes_(block_bytes) {
  const auto& counts = sharding_.counts;
  const auto last = std::find_if(counts.rbegin(), counts.rend(), [](auto n) { return n > 1; });
  const auto dims = static_cast<std::size_t>(counts.rend() - last);
  for (std::size_t d = 0; d < dims; ++d)
    extents_.push_back(static_cast<std::size_t>(shape[d] / counts[d]));
  for (const auto extent : extents_) run_bytes_ = extent > 0 ? run_bytes_ / extent : 0;
  // From the innermost dimension outwards: the bytes of the whole array inside each dimension.
  strides_.resize(dims);
  std::size_t stride = run_bytes_;
  for (std::size_t d = dims; d-- > 0;) {
    strides_[d] = stride;
    stride *= static_cast<std::size_t>(shape[d]);
  }
  if (dims > 0) {
    run_bytes_ *= extents_.back();
    extents_.back() = 1;
  }
}

std::vector<std::size_t> ShardCopies::begin(std::size_t replica) const {
  std::vector<std::size_t> at(strides_.size());
  auto block = static_cast<std::size_t>(sharding_.blocks[replica]);
  for (std::size_t d = sharding_.counts.size(); d-- > 0;) {
    const auto count = static_cast<std::size_t>(sharding_.counts[d]);
    if (d < at.size()) at[d] = block % count;
    block /= count;
  }
  return at;
}

template <class F>
void ShardCopies::forEachRun(std::size_t replica, const F& f) const {
  if (block_bytes_ == 0) return;
  if (strides_.empty()) return f(std::size_t{0}, std::size_t{0});
  const auto block = begin(replica);
  std::size_t first = 0;
  for (std::size_t d = 0; d < strides_.size(); ++d) {
    const bool is_last = d + 1 == strides_.size();
    first += block[d] * (is_last ? run_bytes_ : extents_[d] * strides_[d]);
  }
  std::vector<std::size_t> index(extents_.size(), 0);
  for (std::size_t in_block = 0; in_block < block_bytes_; in_block += run_bytes_) {
    std::size_t at = first;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * strides_[d];
    f(at, in_block);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < extents_[d]) break;
      index[d] = 0;
    }
  }
}

std::optional<std::size_t> ShardCopies::pieceOf(std::size_t replica) const {
  if (run_bytes_ != block_bytes_) return std::nullopt;
  std::size_t found = 0;
  forEachRun(replica, [&](std::size_t at, std::size_t) { found = at; });
  return found;
}

bool ShardCopies::isFirst(std::size_t replica) const {
  if (sharding_.isWhole()) return replica == 0;
  const auto begin = sharding_.blocks.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(replica);
  return std::find(begin, end, sharding_.blocks[replica]) == end;
}

void ShardCopies::take(const std::byte* whole, std::size_t replica, std::byte* block) const {
  forEachRun(replica, [&](std::size_t at, std::size_t in_block) {
    std::memcpy(block + in_block, whole + at, run_bytes_);
  });
}

void ShardCopies::put(const std::byte* block, std::size_t replica, std::byte* whole) const {
  forEachRun(replica, [&](std::size_t at, std::size_t in_block) {
    std::memcpy(whole + at, block + in_block, run_bytes_);
  });
}

}  // namespace ipujax::embedded
