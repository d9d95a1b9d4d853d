#include <numeric>
#include <random>

#include "Check.hpp"
#include "embedded/Sharding.hpp"

using ipujax::embedded::ShardCopies;
using ipujax::embedded::Sharding;
namespace {

struct Sharded {
  std::vector<std::int64_t> shape;
  Sharding sharding;
};

std::size_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{1},
                         [](std::size_t a, std::int64_t b) { return a * std::size_t(b); });
}

Sharded random(std::mt19937& numbers) {
  Sharded made;
  const std::size_t rank = 1 + numbers() % 4;
  for (std::size_t d = 0; d < rank; ++d) {
    made.sharding.counts.push_back(std::int64_t(1 + numbers() % 3));
    made.shape.push_back(made.sharding.counts.back() * std::int64_t(numbers() % 4));
  }
  const std::size_t copies = 1 + numbers() % 2;
  const std::size_t blocks = product(made.sharding.counts);
  for (std::size_t i = 0; i < copies * blocks; ++i)
    made.sharding.blocks.push_back(static_cast<std::int32_t>(i % blocks));
  std::shuffle(made.sharding.blocks.begin(), made.sharding.blocks.end(), numbers);
  return made;
}

/// The elements of a block, one index at a time.
std::vector<std::uint16_t> blockOf(const Sharded& of, const std::vector<std::uint16_t>& whole,
                                   std::int32_t block) {
  std::vector<std::uint16_t> found;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::size_t rest = i, scale = 1, at = 0;
    for (std::size_t d = of.shape.size(); d-- > 0;) {
      const auto size = static_cast<std::size_t>(of.shape[d]);
      const auto count = static_cast<std::size_t>(of.sharding.counts[d]);
      at += rest % size / (size / count) * scale;
      scale *= count;
      rest /= size;
    }
    if (at == static_cast<std::size_t>(block)) found.push_back(whole[i]);
  }
  return found;
}

}  // namespace

TEST(blocks_are_taken_and_put_as_a_plain_loop_does) {
  std::mt19937 numbers(3);
  for (int round = 0; round < 300; ++round) {
    const Sharded of = random(numbers);
    const std::size_t replicas = of.sharding.blocks.size();
    CHECK_EQ(of.sharding.fits(of.shape, replicas), true);
    std::vector<std::uint16_t> whole(product(of.shape)), again(whole.size(), 0);
    std::iota(whole.begin(), whole.end(), std::uint16_t{1});
    const std::size_t bytes = 2 * whole.size() / product(of.sharding.counts);
    const ShardCopies copies(of.sharding, of.shape, bytes);
    CHECK_EQ(copies.wholeBytes(), 2 * whole.size());
    std::vector<bool> seen(product(of.sharding.counts), false);
    for (std::size_t r = 0; r < replicas; ++r) {
      const auto wanted = blockOf(of, whole, of.sharding.blocks[r]);
      std::vector<std::uint16_t> block(wanted.size());
      copies.take(reinterpret_cast<const std::byte*>(whole.data()), r,
                  reinterpret_cast<std::byte*>(block.data()));
      CHECK(block == wanted);
      const auto number = static_cast<std::size_t>(of.sharding.blocks[r]);
      CHECK_EQ(copies.isFirst(r), !seen[number]);
      seen[number] = true;
      if (const auto piece = copies.pieceOf(r); piece && !wanted.empty())
        CHECK(std::equal(wanted.begin(), wanted.end(), whole.begin() + std::ptrdiff_t(*piece / 2)));
      if (copies.isFirst(r))
        copies.put(reinterpret_cast<const std::byte*>(block.data()), r,
                   reinterpret_cast<std::byte*>(again.data()));
    }
    CHECK(again == whole);
  }
}

TEST(rows_lie_in_one_piece_and_columns_do_not) {
  const ShardCopies rows({{2, 1}, {1, 0}}, {4, 6}, 48);
  CHECK_EQ(rows.pieceOf(0).value(), 48u);
  CHECK_EQ(rows.pieceOf(1).value(), 0u);
  const ShardCopies columns({{1, 2}, {0, 1}}, {4, 6}, 48);
  CHECK_EQ(columns.pieceOf(0).has_value(), false);
  const ShardCopies whole({}, {4, 6}, 96);
  CHECK_EQ(whole.pieceOf(3).value(), 0u);
  CHECK_EQ(whole.isFirst(0), true);
  CHECK_EQ(whole.isFirst(1), false);
}

TEST(other_shardings_do_not_fit) {
  const std::vector<std::int64_t> shape{4, 6};
  const auto fits = [&](const Sharding& sharding) { return sharding.fits(shape, 4); };
  CHECK_EQ(fits({}), true);
  CHECK_EQ(fits({{2, 2}, {0, 1, 2, 3}}), true);
  CHECK_EQ(fits({{2, 1}, {0, 1, 1, 0}}), true);
  CHECK_EQ(fits({{}, {0, 0, 0, 0}}), false);        // blocks of nothing
  CHECK_EQ(fits({{2}, {0, 1, 0, 1}}), false);       // another rank
  CHECK_EQ(fits({{2, 1}, {0, 1}}), false);          // another number of replicas
  CHECK_EQ(fits({{1, 4}, {0, 1, 2, 3}}), false);    // 6 columns in 4 blocks
  CHECK_EQ(fits({{0, 1}, {0, 0, 0, 0}}), false);    // no block
  CHECK_EQ(fits({{-2, -2}, {0, 1, 2, 3}}), false);  // negative counts
  CHECK_EQ(fits({{2, 1}, {0, 1, 1, 1}}), false);    // uneven
  CHECK_EQ(fits({{2, 1}, {0, 1, 2, 0}}), false);    // no such block
  CHECK_EQ(fits({{2, 1}, {0, 1, -1, 0}}), false);
  CHECK_EQ(fits({{4, 6}, {0, 1, 2, 3}}), false);  // more blocks than replicas
}
