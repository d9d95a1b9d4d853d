#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "Check.hpp"
#include "engine/kernels/random/CounterBits.hpp"

using ipujax::engine::counterBits;
using Words = std::vector<std::uint32_t>;

namespace {

constexpr std::uint32_t kOnes = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

/// Computes the words of one counter at a time.
Words philoxOneByOne(std::uint64_t low, std::uint64_t high, std::int64_t n) {
  Words words(static_cast<std::size_t>(4 * n));
  for (std::int64_t i = 0; i < n; ++i) {
    counterBits().philox(&words[static_cast<std::size_t>(4 * i)], low, high, 1, 3, 5);
    if (++low == 0) ++high;
  }
  return words;
}

}  // namespace

/// Published with the reference implementation, for counters and keys of zeros and of ones.
TEST(known_answers) {
  std::array<std::uint32_t, 4> words{};
  counterBits().philox(words.data(), 0, 0, 1, 0, 0);
  CHECK((words == std::array{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  counterBits().philox(words.data(), kMost, kMost, 1, kOnes, kOnes);
  CHECK((words == std::array{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  std::uint32_t first = 0, second = 0;
  counterBits().threefry(&first, &second, 0, 1, 0, 0);
  CHECK(first == 0x6b200159u && second == 0x99ba4efeu);
  counterBits().threefry(&first, &second, kMost, 1, kOnes, kOnes);
  CHECK(first == 0x1cb996fcu && second == 0xbb002be7u);
}

/// Nothing is written past the end, and counters carry into their next word.
TEST(any_number_of_counters_from_anywhere) {
  for (const std::uint64_t begin :
       {std::uint64_t{0}, std::uint64_t{kOnes} - 40, kMost - 40, kMost}) {
    for (std::int64_t n = 0; n < 200; n += n < 70 ? 1 : 43) {
      const auto size = static_cast<std::size_t>(n);
      Words words(4 * size + 1, 7u);
      counterBits().philox(words.data(), begin, 9, n, 3, 5);
      CHECK(words.back() == 7u);
      words.pop_back();
      CHECK(words == philoxOneByOne(begin, 9, n));

      Words first(size + 1, 7u), second(size + 1, 7u);
      counterBits().threefry(first.data(), second.data(), begin, n, 3, 5);
      CHECK(first.back() == 7u && second.back() == 7u);
      for (std::size_t i = 0; i < size; ++i) {
        std::uint32_t a = 0, b = 0;
        counterBits().threefry(&a, &b, begin + i, 1, 3, 5);
        CHECK(first[i] == a && second[i] == b);
      }
    }
  }
}

TEST(scattered_counters) {
  std::vector<std::uint64_t> counters;
  for (std::uint64_t k = 0; k < 131; ++k) counters.push_back(k * 0x123456789abcdefu);
  Words words(4 * counters.size());
  counterBits().philox_at(words.data(), counters.data(), 9,
                          static_cast<std::int64_t>(counters.size()), 3, 5);
  for (std::size_t k = 0; k < counters.size(); ++k) {
    std::array<std::uint32_t, 4> one{};
    counterBits().philox(one.data(), counters[k], 9, 1, 3, 5);
    CHECK(std::equal(one.begin(), one.end(), &words[4 * k]));
  }
}
