#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

/// The state of the random generators of an IPU: four words for each worker of each tile, which
/// codelets use directly. Poprand functions called without a seed count their calls in the words of
/// the first tile's first worker, scrambled so that similar seeds end up far apart.
namespace ipujax::engine::seeds {

constexpr std::size_t kWords = 4;

/// The name of their tensor, UNSIGNED_INT [tiles, workers, 4], in GraphImpl::hidden, for a whole
/// program or for the replicas that createReplicatedGraph made of its tiles from `first_tile` on.
inline std::string hiddenName(unsigned replicas, unsigned first_tile) {
  if (replicas == 1) return "poprand.seed";
  return "poprand.seed of " + std::to_string(replicas) + " from " + std::to_string(first_tile);
}

namespace detail {

constexpr std::uint64_t mixed(std::uint64_t x) {  // splitmix64's
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
constexpr std::uint64_t kRound = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t kRounds = 4;

}  // namespace detail

/// A bijection of four words, a Feistel network; unscramble() is its inverse.
inline void scramble(std::uint32_t* words) {
  std::uint64_t half[2];
  std::memcpy(half, words, sizeof(half));
  for (std::uint64_t i = 0; i < detail::kRounds; ++i)
    half[i % 2] ^= detail::mixed(half[1 - i % 2] + (i + 1) * detail::kRound);
  std::memcpy(words, half, sizeof(half));
}
inline void unscramble(std::uint32_t* words) {
  std::uint64_t half[2];
  std::memcpy(half, words, sizeof(half));
  for (std::uint64_t i = detail::kRounds; i-- > 0;)
    half[i % 2] ^= detail::mixed(half[1 - i % 2] + (i + 1) * detail::kRound);
  std::memcpy(words, half, sizeof(half));
}

/// The words of `workers` workers, derived from a seed of two words and a modifier.
inline std::vector<std::uint32_t> ofWorkers(std::size_t workers, std::uint32_t seed0,
                                            std::uint32_t seed1, std::uint32_t modifier) {
  std::vector<std::uint32_t> all(workers * kWords);
  for (std::size_t i = 0; i < workers; ++i) {
    std::uint32_t* words = all.data() + i * kWords;
    words[0] = seed0;
    words[1] = seed1;
    words[2] = modifier;
    words[3] = i == 0 ? 0 : ~static_cast<std::uint32_t>(i);  // no call count reaches it
    scramble(words);
  }
  return all;
}

}  // namespace ipujax::engine::seeds
