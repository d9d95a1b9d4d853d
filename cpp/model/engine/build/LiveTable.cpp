#include "engine/build/LiveTable.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace ipujax::engine::build {
namespace {

constexpr unsigned kWordBits = 64;

/// The begin or end of a block's life. At the same time, ends come before begins.
struct Change {
  std::uint64_t moment;  ///< twice the time, plus 1 if it begins
  std::uint32_t block;

  bool begins() const { return (moment & 1) != 0; }
};

/// Radix sort, eight bits at a time: a program has few moments, and many blocks change at each.
void sortByMoment(std::vector<Change>& changes) {
  std::uint64_t all = 0;
  for (const Change& change : changes) all |= change.moment;
  std::vector<Change> sorted(changes.size());
  for (unsigned shift = 0; shift < kWordBits && all >> shift != 0; shift += 8) {
    const auto digitOf = [&](const Change& change) { return change.moment >> shift & 0xff; };
    std::array<std::size_t, 257> begins{};
    for (const Change& change : changes) ++begins[digitOf(change) + 1];
    for (std::size_t digit = 1; digit < begins.size(); ++digit) begins[digit] += begins[digit - 1];
    for (const Change& change : changes) sorted[begins[digitOf(change)]++] = change;
    changes.swap(sorted);
  }
}

/// In order of time. Blocks of no bytes are never live.
std::vector<Change> changesOf(const std::vector<Block>& blocks) {
  std::size_t count = 0;
  for (const Block& block : blocks) count += 2 * block.live->size();
  std::vector<Change> changes;
  changes.reserve(count);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes == 0) continue;
    for (const Segment& live : *blocks[i].live) {
      changes.push_back({2 * live.begin + 1, static_cast<std::uint32_t>(i)});
      changes.push_back({2 * (live.end + 1), static_cast<std::uint32_t>(i)});
    }
  }
  sortByMoment(changes);
  return changes;
}

/// Counts live bytes over time.
class LiveBytes {
 public:
  LiveBytes(const std::vector<Block>& blocks, std::uint64_t alignment)
      : blocks_(blocks), alignment_(alignment) {}

  void add(const Change& change) {
    const std::uint64_t rounded = roundedUp(blocks_[change.block].bytes, alignment_);
    now_ += change.begins() ? rounded : -rounded;
    most_ = std::max(most_, now_);
  }
  std::uint64_t most() const { return most_; }

 private:
  const std::vector<Block>& blocks_;
  std::uint64_t alignment_;
  std::uint64_t now_ = 0;
  std::uint64_t most_ = 0;
};

}  // namespace

std::uint64_t mostLive(const std::vector<Block>& blocks, std::uint64_t alignment) {
  LiveBytes bytes(blocks, alignment);
  for (const Change& change : changesOf(blocks)) bytes.add(change);
  return bytes.most();
}

LiveTable::LiveTable(const std::vector<Block>& blocks, std::uint64_t alignment)
    : num_words_((blocks.size() + kWordBits - 1) / kWordBits), bits_(blocks.size() * num_words_) {
  LiveBytes bytes(blocks, alignment);
  std::vector<std::uint64_t> now(num_words_);
  for (const Change& change : changesOf(blocks)) {
    bytes.add(change);
    now[change.block / kWordBits] ^= std::uint64_t{1} << change.block % kWordBits;
    if (!change.begins()) continue;
    for (std::size_t w = 0; w < num_words_; ++w) bits_[change.block * num_words_ + w] |= now[w];
  }
  most_live_ = bytes.most();
  // So far each set has the blocks live when its own block began, including that one.
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    const std::uint64_t own = std::uint64_t{1} << block % kWordBits;
    bits_[block * num_words_ + block / kWordBits] &= ~own;
    for (std::size_t w = 0; w < num_words_; ++w)
      for (std::uint64_t rest = bits_[block * num_words_ + w]; rest != 0; rest &= rest - 1) {
        const auto other = w * kWordBits + static_cast<std::size_t>(std::countr_zero(rest));
        bits_[other * num_words_ + block / kWordBits] |= own;
      }
  }
}

}  // namespace ipujax::engine::build
