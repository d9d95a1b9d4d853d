#include "poputil/VarStructure.hpp"

#include <numeric>

#include "poputil/exceptions.hpp"

namespace poputil {
namespace {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;

void needRank(const char* where, std::size_t rank, std::size_t got) {
  if (rank == got) return;
  throw poplibs_error(std::string("[poputil::") + where + "] needs " + std::to_string(rank) +
                      " partition counts, one for each dimension; got " + std::to_string(got) +
                      ". Pass 1 for a dimension that is whole.");
}

/// Partition `i` of `n` of a dimension, the larger ones first.
Interval partOf(std::size_t size, std::size_t n, std::size_t i) {
  const std::size_t small = size / n;
  const std::size_t larger = size % n;
  const auto bound = [&](std::size_t k) { return small * k + std::min(k, larger); };
  return {bound(i), bound(i + 1)};
}

using PartFn = std::function<void(const std::vector<std::size_t>&, const std::vector<Interval>&)>;

void forEachPart(const std::vector<std::size_t>& shape, const std::vector<std::size_t>& counts,
                 const PartFn& fn) {
  std::vector<std::size_t> at(shape.size(), 0);
  for (;;) {
    std::vector<Interval> bounds;
    for (std::size_t d = 0; d < shape.size(); ++d)
      bounds.push_back(partOf(shape[d], counts[d], at[d]));
    fn(at, bounds);
    std::size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == counts[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// The length that divides all runs of memory in row-major order.
unsigned commonRun(const Graph& graph, const Tensor& flat, std::size_t last) {
  std::size_t group = last;
  for (const Interval& run : flat.getContiguousRegions()) {
    group = std::gcd(group, run.begin());
    group = std::gcd(group, run.size());
  }
  for (const auto& tile : graph.getTileMapping(flat, false)) {
    for (const Interval& region : tile) {
      group = std::gcd(group, region.begin());
      group = std::gcd(group, region.size());
    }
  }
  return static_cast<unsigned>(group);
}

}  // namespace

unsigned detectInnermostGrouping(const Graph& graph, const Tensor& t) {
  if (t.rank() == 0)
    throw poplibs_error(
        "[poputil::detectInnermostGrouping] needs a tensor of rank 1 or more; got a scalar. "
        "Flatten it.");
  return commonRun(graph, t.flatten(), t.dim(t.rank() - 1));
}

std::vector<GroupingInfo> detectDimGroupings(const Graph& graph, const Tensor& t) {
  if (t.rank() == 0) return {{0, detectInnermostGrouping(graph, t)}};  // throws
  std::vector<GroupingInfo> groupings;
  Tensor rest = t;  // one element of each group found so far
  const auto next = [&]() -> GroupingInfo {
    for (unsigned d = t.rank(); d-- > 0;) {
      const unsigned group = detectInnermostGrouping(graph, rest.dimRoll(d, t.rank() - 1));
      if (group > 1) return {d, group};
    }
    return {0, 1};
  };
  for (GroupingInfo found = next(); found.second > 1; found = next()) {
    groupings.push_back(found);
    rest = rest.subSample(found.second, found.first);
    if (groupings.size() > 1) break;  // strides of outer groups are no runs: two levels are told
  }
  return groupings;
}

Tensor createPartitionableTensor(Graph& graph, const poplar::Type& type,
                                 const std::vector<std::size_t>& shape,
                                 const std::vector<std::size_t>& nPartitions,
                                 const poplar::DebugContext& debugContext) {
  needRank("createPartitionableTensor", shape.size(), nPartitions.size());
  const std::size_t elements =
      std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  const Tensor memory = graph.addVariable(type, {elements}, debugContext);
  if (elements == 0) return memory.reshape(shape);
  // Joins the pieces dimension by dimension, from the last one out.
  std::vector<Tensor> pieces;
  std::size_t used = 0;
  forEachPart(shape, nPartitions, [&](const auto&, const std::vector<Interval>& bounds) {
    std::vector<std::size_t> part;
    for (const auto& b : bounds) part.push_back(b.size());
    const std::size_t n =
        std::accumulate(part.begin(), part.end(), std::size_t{1}, std::multiplies<>());
    pieces.push_back(memory.slice(used, used + n).reshape(part));
    used += n;
  });
  for (std::size_t d = shape.size(); d-- > 0;) {
    std::vector<Tensor> joined;
    for (std::size_t i = 0; i < pieces.size(); i += nPartitions[d]) {
      joined.push_back(poplar::concat(poplar::ArrayRef<Tensor>(pieces.data() + i, nPartitions[d]),
                                      static_cast<unsigned>(d)));
    }
    pieces = std::move(joined);
  }
  return pieces.front();
}

void iterateTensorPartitions(
    const Tensor& t, const std::vector<std::size_t>& nPartitions,
    const std::function<void(const std::vector<std::size_t>& i, const Tensor& s)>& f) {
  needRank("iterateTensorPartitions", t.rank(), nPartitions.size());
  forEachPart(t.shape(), nPartitions,
              [&](const std::vector<std::size_t>& at, const std::vector<Interval>& bounds) {
                Tensor slice = t;
                for (unsigned d = 0; d < bounds.size(); ++d) slice = slice.slice(bounds[d], d);
                f(at, slice);
              });
}

}  // namespace poputil
