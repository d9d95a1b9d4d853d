#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "Check.hpp"
#include "engine/build/Allocate.hpp"
#include "engine/build/LiveTable.hpp"

using ipujax::engine::build::allocate;
using ipujax::engine::build::Block;
using ipujax::engine::build::BlockPair;
using ipujax::engine::build::LiveTable;
using ipujax::engine::build::Segment;
using ipujax::engine::build::TileMemory;

namespace {

using Random = std::mt19937_64;
constexpr std::uint64_t kAlignment = 8;
const TileMemory kPlain{};  ///< without elements

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

/// Memory elements that a range of addresses touches, as a list instead of the allocator's sums.
std::vector<std::uint64_t> elementsOf(const TileMemory& memory, std::uint64_t from,
                                      std::uint64_t to) {
  std::vector<std::uint64_t> found;
  std::uint64_t begin = 0;
  while (begin < to) {
    const std::uint64_t size = memory.element_bytes * (begin < memory.interleaved ? 1 : 2);
    if (begin + size > from) found.push_back(begin);
    begin += size;
  }
  return found;
}

bool shareElement(const TileMemory& memory, const Block& a, const Block& b) {
  const auto x = elementsOf(memory, a.offset, a.offset + a.bytes);
  const auto y = elementsOf(memory, b.offset, b.offset + b.bytes);
  return std::ranges::any_of(x, [&](auto e) { return std::ranges::find(y, e) != y.end(); });
}

bool overlap(const Block& a, const Block& b) {
  return a.offset < b.offset + aligned(b.bytes) && b.offset < a.offset + aligned(a.bytes);
}

/// The memory that a placement needs, as the header defines it.
std::uint64_t neededBy(const TileMemory& memory, const std::vector<Block>& blocks) {
  std::uint64_t top = memory.first, below = memory.first;
  for (const Block& block : blocks) {
    if (block.bytes == 0) continue;
    top = std::max(top, block.offset + aligned(block.bytes));
    if (block.offset < memory.interleaved)
      below = std::max(below, block.offset + aligned(block.bytes));
  }
  if (top > memory.end || top <= memory.interleaved || below >= memory.interleaved) return top;
  return below + (top - memory.interleaved);
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
    const std::uint64_t top = allocate(blocks, kPlain);
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
  std::vector<double> gaps;  // relative to what is live; lives of several parts need some
  for (int i = 0; i < 500; ++i) {
    Lives lives = randomLives(random);
    const std::uint64_t least = mostLive(lives.blocks);
    const std::uint64_t top = allocate(lives.blocks, kPlain);
    CHECK(top >= least);
    if (least > 0) gaps.push_back(static_cast<double>(top) / static_cast<double>(least) - 1);
  }
  std::ranges::sort(gaps);
  CHECK(gaps[gaps.size() / 2] < 0.01);
  CHECK(gaps[gaps.size() * 9 / 10] < 0.12);
  CHECK(gaps[gaps.size() * 98 / 100] < 0.25);
}

namespace {

std::vector<BlockPair> randomPairs(Random& random, const std::vector<Block>& blocks) {
  std::vector<BlockPair> pairs;
  for (std::uint64_t i = blocks.size() / 2; i > 0; --i) {
    const auto a = static_cast<std::uint32_t>(below(random, blocks.size()));
    const auto b = static_cast<std::uint32_t>(below(random, blocks.size()));
    if (a != b) pairs.emplace_back(a, b);
  }
  return pairs;
}

bool holds(const TileMemory& memory, const std::vector<Block>& blocks,
           const std::vector<BlockPair>& apart) {
  const auto live = [&](const Block& a, const Block& b) {
    return a.bytes > 0 && b.bytes > 0 && together(a, b);
  };
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    if (blocks[a].bytes == 0) continue;
    if (blocks[a].offset < memory.first || blocks[a].offset % kAlignment != 0) return false;
    if (blocks[a].interleaved && blocks[a].offset < memory.interleaved) return false;
    if (blocks[a].interleaved && blocks[a].offset % 16 != 0) return false;
    for (std::size_t b = 0; b < a; ++b)
      if (live(blocks[a], blocks[b]) && overlap(blocks[a], blocks[b])) return false;
  }
  return std::ranges::none_of(apart, [&](const BlockPair& pair) {
    const Block& a = blocks[pair.first];
    const Block& b = blocks[pair.second];
    return live(a, b) && shareElement(memory, a, b);
  });
}

/// The least memory that any placement needs, by trying all placements.
void tryAll(const TileMemory& memory, std::vector<Block>& blocks, std::size_t placed,
            const std::vector<BlockPair>& apart, std::uint64_t& best) {
  if (placed == blocks.size()) {
    best = std::min(best, neededBy(memory, blocks));
    return;
  }
  std::vector<Block> some(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(placed + 1));
  std::vector<BlockPair> pairs;
  for (const BlockPair& pair : apart)
    if (pair.first <= placed && pair.second <= placed) pairs.push_back(pair);
  for (std::uint64_t at = memory.first; at + blocks[placed].bytes <= memory.end; at += kAlignment) {
    blocks[placed].offset = some.back().offset = at;
    if (holds(memory, some, pairs)) tryAll(memory, blocks, placed + 1, apart, best);
  }
}

}  // namespace

TEST(blocks_meet_what_vertices_need_of_elements) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    Lives lives = randomLives(random);
    for (Block& block : lives.blocks) block.interleaved = below(random, 4) == 0;
    const auto apart = randomPairs(random, lives.blocks);
    const std::uint64_t first = below(random, 3000) * kAlignment;
    const TileMemory memory{kAlignment, first, 13 * 1024, 39 * 1024, 1024};
    const std::uint64_t needed = allocate(lives.blocks, memory, apart);
    CHECK(holds(memory, lives.blocks, apart));
    CHECK_EQ(needed, neededBy(memory, lives.blocks));
    CHECK(needed >= first + mostLive(lives.blocks));
  }
}

TEST(many_blocks_get_the_addresses_that_few_get) {
  Random random(6);
  for (int i = 0; i < 100; ++i) {
    Lives lives = randomLives(random);
    for (Block& block : lives.blocks) block.interleaved = below(random, 4) == 0;
    const auto apart = randomPairs(random, lives.blocks);
    const TileMemory memory{kAlignment, 8, 13 * 1024, 39 * 1024, 1024};
    std::vector<Block> others = lives.blocks;
    CHECK_EQ(allocate(lives.blocks, memory, apart), allocate(others, memory, apart, 0));
    for (std::size_t b = 0; b < others.size(); ++b)
      CHECK_EQ(others[b].offset, lives.blocks[b].offset);
  }
}

TEST(a_table_has_every_pair_that_is_live_together) {
  Random random(7);
  for (int i = 0; i < 50; ++i) {
    const Lives lives = randomLives(random);
    const auto& blocks = lives.blocks;
    const LiveTable table(blocks, kAlignment);
    CHECK_EQ(table.mostLive(), mostLive(blocks));
    CHECK_EQ(ipujax::engine::build::mostLive(blocks, kAlignment), mostLive(blocks));
    for (std::size_t a = 0; a < blocks.size(); ++a)
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        const bool expected =
            a != b && blocks[a].bytes > 0 && blocks[b].bytes > 0 && together(blocks[a], blocks[b]);
        CHECK_EQ((table.liveWith(a)[b / 64] >> b % 64 & 1u) != 0, expected);
      }
  }
}

TEST(few_blocks_need_little_more_than_the_best_of_all_placements) {
  Random random(5);
  const TileMemory memory{kAlignment, 8, 48, 176, 16};
  int best_found = 0, fitting = 0, too_large = 0;
  std::uint64_t all_needed = 0, all_best = 0;
  for (int i = 0; i < 150; ++i) {
    std::vector<std::vector<Segment>> lives(4);
    std::vector<Block> blocks;
    for (auto& life : lives) {
      const std::uint64_t begin = below(random, 4);
      life = {{begin, begin + below(random, 3)}};
      blocks.push_back({1 + below(random, 60), &life, below(random, 3) == 0});
    }
    const auto apart = randomPairs(random, blocks);
    std::vector<Block> tried = blocks;
    std::uint64_t best = ~std::uint64_t{0};
    tryAll(memory, tried, 0, apart, best);
    const std::uint64_t needed = allocate(blocks, memory, apart);
    CHECK(holds(memory, blocks, apart));
    CHECK(needed >= std::min(best, memory.end + 1));
    if (best > memory.end) continue;
    ++fitting;
    all_needed += needed;
    all_best += best;
    if (needed == best) ++best_found;
    if (needed > memory.end) ++too_large;
  }
  CHECK(fitting > 100);
  CHECK(best_found * 2 > fitting);
  CHECK(all_needed * 10 < all_best * 11);
  CHECK(too_large * 20 < fitting);
}

TEST(a_tile_without_elements_keeps_nothing_apart) {
  const std::vector<Segment> once{{0, 0}};
  std::vector<Block> blocks{{24, &once, true}, {16, &once}};
  CHECK_EQ(allocate(blocks, kPlain, {{0, 1}}), 40u);
}

TEST(memory_that_no_block_may_use_is_not_needed_while_all_fit) {
  const std::vector<Segment> once{{0, 0}};
  const TileMemory memory{kAlignment, 16, 1024, 4096, 256};
  std::vector<Block> blocks{{100, &once, true}, {64, &once}};
  CHECK_EQ(allocate(blocks, memory), 16u + 64 + 104);
  CHECK_EQ(blocks[0].offset, 1024u);
  std::vector<Block> large{{3200, &once, true}, {64, &once}};
  CHECK_EQ(allocate(large, memory), 1024u + 3200);  // past the end
}

TEST(the_same_blocks_get_the_same_addresses) {
  Random random(3);
  Lives lives = randomLives(random);
  std::vector<Block> again = lives.blocks;
  CHECK_EQ(allocate(lives.blocks, kPlain), allocate(again, kPlain));
  for (std::size_t i = 0; i < again.size(); ++i) CHECK_EQ(again[i].offset, lives.blocks[i].offset);
}

TEST(nothing_and_blocks_that_never_live_take_nothing) {
  std::vector<Block> none;
  CHECK_EQ(allocate(none, kPlain), 0u);
  const std::vector<Segment> never;
  const std::vector<Segment> once{{5, 5}};
  std::vector<Block> blocks{{0, &once}, {13, &once}, {1, &once}};
  CHECK_EQ(allocate(blocks, kPlain), 24u);
}
