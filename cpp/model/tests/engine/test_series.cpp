#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "Check.hpp"
#include "engine/simd/Series.hpp"

/// Every series gives the same bits as its links; other chains are not recognised as series.
namespace {
using namespace ipujax::engine::simd;

constexpr std::size_t kMemory = Series::kMost + 2;  ///< first the value, last the result
constexpr std::size_t kTo = kMemory - 1;

/// Values of many sizes, including some that round, overflow or are NaN.
std::vector<float> values(std::size_t n, std::mt19937& random) {
  using Limits = std::numeric_limits<float>;
  const float special[] = {0.0f,
                           -0.0f,
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::denorm_min(),
                           Limits::max(),
                           Limits::min()};
  std::vector<float> result(n);
  for (float& x : result) {
    const auto bits = static_cast<std::uint32_t>(random());
    x = bits % 4 == 0
            ? special[bits / 4 % std::size(special)]
            : std::ldexp(static_cast<float>(bits) - 2.0e9f, static_cast<int>(bits % 60) - 60);
  }
  return result;
}

/// The links of `kinds`, each sum an addition or a subtraction.
std::vector<ChainLink> linksOf(std::size_t length, std::size_t kinds, std::mt19937& random) {
  std::vector<ChainLink> links;
  for (std::size_t i = 0; i < length; ++i, kinds /= Series::kNumKinds) {
    const auto kind = static_cast<Series::Kind>(kinds % Series::kNumKinds);
    const bool scalar = kind == Series::kSumOfScalar || kind == Series::kProductOfScalar;
    const bool product = kind == Series::kProduct || kind == Series::kProductOfScalar;
    const Link link = product ? Link::kMultiply : random() % 2 == 0 ? Link::kAdd : Link::kSubtract;
    links.emplace_back(link, ChainOperand{scalar ? Source::kScalar : Source::kMemory,
                                          static_cast<std::uint8_t>(i + 1)});
  }
  links.front().loadFirst(ChainLink(Link::kLoad, {Source::kMemory, 0}));
  links.back().storeAfter(kTo);
  links.emplace_back(Link::kEnd);
  return links;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!nan && std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]))
      return false;
  }
  return true;
}

/// Runs the links. The result overwrites the value `in_place`, or is in its own memory (kTo).
std::vector<float> result(std::vector<std::vector<float>> memory, std::size_t in_place,
                          const std::vector<ChainLink>& links, const Series* series) {
  const std::size_t n = memory[0].size();
  std::vector<std::uint8_t> steps(kMemory, 4);
  ChainMemory at;
  for (std::size_t k = 0; k < kMemory; ++k)
    at.at[k] = reinterpret_cast<std::byte*>(memory[k].data());
  at.at[kTo] = at.at[in_place];
  for (const ChainLink& link : links)
    if (link.code == ChainLink::codeOf(link.link, Source::kScalar)) steps[link.a] = 0;
  const auto begin = at.at[0];
  if (series)
    runSeries(*series, at, steps, static_cast<std::int64_t>(n));
  else
    runChain(links.data(), at, steps, static_cast<std::int64_t>(n));
  CHECK(at.at[0] == begin + n * sizeof(float));
  return memory[in_place];
}

TEST(every_series_equals_its_links) {
  std::mt19937 random(1);
  std::size_t number = 0;
  for (std::size_t length = Series::kFewest; length <= Series::kMost; ++length) {
    const std::size_t all = Series::codeOf(length + 1, 0) - Series::codeOf(length, 0);
    for (std::size_t kinds = 0; kinds < all; ++kinds, ++number) {
      const auto links = linksOf(length, kinds, random);
      const auto series = seriesOf(links);
      CHECK(series && series->code == number);
      for (const std::int64_t vectors : {1, 3, 4, 9}) {
        std::vector<std::vector<float>> memory;
        for (std::size_t k = 0; k < kMemory; ++k)
          memory.push_back(values(static_cast<std::size_t>(vectors * chainLanes()), random));
        for (const std::size_t in_place : {kTo, std::size_t{0}})
          CHECK(same(result(memory, in_place, links, &*series),
                     result(memory, in_place, links, nullptr)));
      }
    }
  }
  CHECK(number == kNumSeries);
}

TEST(other_chains_are_no_series) {
  std::mt19937 random(2);
  const auto links = linksOf(3, 0, random);
  CHECK(seriesOf(links).has_value());
  auto stores = links;
  stores[1].storeAfter(kTo);
  CHECK(!seriesOf(stores));
  auto loads = links;
  loads[1].loadFirst(ChainLink(Link::kLoad, {Source::kMemory, 0}));
  CHECK(!seriesOf(loads));
  auto other = links;
  other[1] = ChainLink(Link::kDivide, {Source::kMemory, 2});
  CHECK(!seriesOf(other));
  CHECK(!seriesOf(linksOf(1, 0, random)));
  auto longer = linksOf(Series::kMost, 0, random);
  longer.insert(longer.begin() + 1, longer[1]);
  CHECK(!seriesOf(longer));
}

}  // namespace
