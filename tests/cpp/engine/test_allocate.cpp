#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "Check.hpp"
#include "engine/build/Allocate.hpp"

using ipujax::engine::build::allocate;
using ipujax::engine::build::Block;
using ipujax::engine::build::Segment;

namespace {

using Random = std::mt19937_64;
constexpr std::uint64_t kAlignment = 8;

std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Mostly short lives, some long ones, some of several parts, as in functions called repeatedly.
std::vector<Segment> randomLife(Random& random, std::uint64_t length) {
  std::vector<Segment> life;
  std::uint64_t at = below(random, length);
  for (std::uint64_t parts = 1 + below(random, 4) / 3 * below(random, 4); parts > 0; --parts) {
    const std::uint64_t last = at + below(random, below(random, 5) == 0 ? length : 4);
    life.push_back({at, std::min(last, length - 1)});
    at = last + 2 + below(random, 4);
    if (at >= length) break;
  }
  return life;
}

struct Lives {
  std::vector<std::vector<Segment>> all;
  std::vector<Block> blocks;
};

Lives randomLives(Random& random) {
  Lives lives;
  const std::uint64_t length = 1 + below(random, 3000);
  lives.all.resize(below(random, 400));
  for (auto& life : lives.all) life = randomLife(random, length);
  for (const auto& life : lives.all)
    lives.blocks.push_back({below(random, std::uint64_t{1} << below(random, 14)), &life});
  return lives;
}

bool together(const Block& a, const Block& b) {
  for (const Segment& x : *a.live)
    for (const Segment& y : *b.live)
      if (x.begin <= y.end && y.begin <= x.end) return true;
  return false;
}

std::uint64_t mostLive(const std::vector<Block>& blocks) {
  std::map<std::uint64_t, std::int64_t> changes;
  for (const Block& block : blocks) {
    for (const Segment& live : *block.live) {
      changes[live.begin] += static_cast<std::int64_t>(aligned(block.bytes));
      changes[live.end + 1] -= static_cast<std::int64_t>(aligned(block.bytes));
    }
  }
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<std::uint64_t>(most);
}

}  // namespace

TEST(blocks_that_are_live_at_one_time_are_apart_and_aligned) {
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    Lives lives = randomLives(random);
    auto& blocks = lives.blocks;
    const std::uint64_t top = allocate(blocks, kAlignment);
    for (std::size_t a = 0; a < blocks.size(); ++a) {
      CHECK_EQ(blocks[a].offset % kAlignment, 0u);
      CHECK(blocks[a].offset + blocks[a].bytes <= top);
      for (std::size_t b = 0; b < a; ++b) {
        if (blocks[a].bytes == 0 || blocks[b].bytes == 0) continue;
        const bool apart = blocks[a].offset + blocks[a].bytes <= blocks[b].offset ||
                           blocks[b].offset + blocks[b].bytes <= blocks[a].offset;
        CHECK(apart || !together(blocks[a], blocks[b]));
      }
    }
  }
}

TEST(addresses_take_at_least_what_is_live_and_little_more) {
  Random random(2);
  std::vector<double> gaps;  // as a part of what is live; of lives of several parts some are needed
  for (int i = 0; i < 500; ++i) {
    Lives lives = randomLives(random);
    const std::uint64_t least = mostLive(lives.blocks);
    const std::uint64_t top = allocate(lives.blocks, kAlignment);
    CHECK(top >= least);
    if (least > 0) gaps.push_back(static_cast<double>(top) / static_cast<double>(least) - 1);
  }
  std::ranges::sort(gaps);
  CHECK(gaps[gaps.size() / 2] < 0.01);
  CHECK(gaps[gaps.size() * 9 / 10] < 0.12);
  CHECK(gaps[gaps.size() * 98 / 100] < 0.25);
}

TEST(the_same_blocks_get_the_same_addresses) {
  Random random(3);
  Lives lives = randomLives(random);
  std::vector<Block> again = lives.blocks;
  CHECK_EQ(allocate(lives.blocks, kAlignment), allocate(again, kAlignment));
  for (std::size_t i = 0; i < again.size(); ++i) CHECK_EQ(again[i].offset, lives.blocks[i].offset);
}

TEST(nothing_and_blocks_that_never_live_take_nothing) {
  std::vector<Block> none;
  CHECK_EQ(allocate(none, kAlignment), 0u);
  const std::vector<Segment> never;
  const std::vector<Segment> once{{5, 5}};
  std::vector<Block> blocks{{0, &once}, {13, &once}, {1, &once}};
  CHECK_EQ(allocate(blocks, kAlignment), 24u);
}
