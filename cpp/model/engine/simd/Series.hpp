#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/simd/Chain.hpp"

/// Chains of only a few additions, subtractions and multiplications, such as
/// (x - mean) * scale * gamma + beta, have a loop for each such series: jumps between links in each
/// strip would cost as much as the operations.
namespace ipujax::engine::simd {

struct Series {
  static constexpr std::size_t kFewest = 2, kMost = 4;  ///< operations
  /// What an operation does with the value, `v`, and its operand, y.
  enum Kind : unsigned { kSum, kSumOfScalar, kProduct, kProductOfScalar };
  static constexpr unsigned kNumKinds = 4;

  /// The index of a loop: shorter ones first, then by kinds, where the first operation's is the
  /// least significant.
  static constexpr std::size_t codeOf(std::size_t length, std::size_t kinds) {
    std::size_t before = 0, n = kNumKinds * kNumKinds;
    for (std::size_t k = kFewest; k < length; ++k, n *= kNumKinds) before += n;
    return before + kinds;
  }

  std::uint16_t code = 0;
  std::uint8_t from = 0, to = 0;             ///< numbers of memory, as in links
  std::array<std::uint8_t, kMost> operands;  ///< likewise
  std::array<float, kMost> signs;            ///< sums are v + sign * y, with signs 1 and -1
};
constexpr std::size_t kNumSeries = Series::codeOf(Series::kMost + 1, 0);

/// The series that a chain is, if it is one.
std::optional<Series> seriesOf(std::span<const ChainLink> links);

/// Like runChain.
void runSeries(const Series& series, ChainMemory& memory, std::span<const std::uint8_t> steps,
               std::int64_t n);

}  // namespace ipujax::engine::simd
