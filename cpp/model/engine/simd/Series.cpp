#include "engine/simd/Series.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(void runSeries(const Series&, ChainMemory&, std::span<const std::uint8_t>,
                                   std::int64_t))

void runSeries(const Series& series, ChainMemory& memory, std::span<const std::uint8_t> steps,
               std::int64_t n) {
  IPUJAX_PICK(runSeries)(series, memory, steps, n);
}

namespace {

struct Operation {
  Series::Kind kind;
  float sign = 1;
};

std::optional<Operation> operationOf(const ChainLink& link) {
  const auto is = [&](Link kind, Source source) {
    return (link.code & ~3u) == ChainLink::codeOf(kind, source);
  };
  if (is(Link::kAdd, Source::kMemory)) return Operation{Series::kSum};
  if (is(Link::kSubtract, Source::kMemory)) return Operation{Series::kSum, -1};
  if (is(Link::kMultiply, Source::kMemory)) return Operation{Series::kProduct};
  if (is(Link::kAdd, Source::kScalar)) return Operation{Series::kSumOfScalar};
  if (is(Link::kSubtract, Source::kScalar)) return Operation{Series::kSumOfScalar, -1};
  if (is(Link::kMultiply, Source::kScalar)) return Operation{Series::kProductOfScalar};
  return {};
}

}  // namespace

std::optional<Series> seriesOf(std::span<const ChainLink> links) {
  const std::size_t length = links.size() - 1;  // the last one is kEnd
  if (length < Series::kFewest || length > Series::kMost) return {};
  Series series;
  std::size_t kinds = 0;
  for (std::size_t i = 0, place = 1; i < length; ++i, place *= Series::kNumKinds) {
    const auto operation = operationOf(links[i]);
    if (!operation || links[i].loads() != (i == 0) || links[i].stores() != (i + 1 == length))
      return {};
    kinds += operation->kind * place;
    series.operands[i] = links[i].a;
    series.signs[i] = operation->sign;
  }
  series.code = static_cast<std::uint16_t>(Series::codeOf(length, kinds));
  series.from = links[0].from;
  series.to = links[length - 1].to;
  return series;
}

}  // namespace ipujax::engine::simd
