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

/// Partition `i` of `n` of a dimension: full ones of equal size, one with the rest, then empty.
Interval partOf(std::size_t size, std::size_t n, std::size_t i) {
  const std::size_t each = (size + n - 1) / n;
  return {std::min(i * each, size), std::min((i + 1) * each, size)};
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

/// Elements of the longest interval that one tile has.
std::size_t longestRegion(const Graph& graph, const Tensor& t) {
  std::size_t longest = 0;
  for (const auto& tile : graph.getTileMapping(t, false))
    for (const Interval& region : tile) longest = std::max(longest, region.size());
  return longest;
}

}  // namespace

// Source of both: PopLibs, VarStructure.
unsigned detectInnermostGrouping(const Graph& graph, const Tensor& t) {
  if (t.rank() == 0)
    throw poplibs_error(
        "[poputil::detectInnermostGrouping] needs a tensor of rank 1 or more; got a scalar. "
        "Flatten it.");
  if (t.numElements() == 0) return 1;
  Tensor row = t;
  while (row.rank() > 1) row = row[0];
  const std::size_t run = row.getContiguousRegions().front().size();
  const std::size_t group = std::gcd(run, longestRegion(graph, row));
  return row.numElements() % group == 0 ? static_cast<unsigned>(group) : 1;
}

std::vector<GroupingInfo> detectDimGroupings(const Graph& graph, const Tensor& t) {
  std::vector<GroupingInfo> groupings;
  const unsigned rank = t.rank();
  if (rank == 0) return {{0, detectInnermostGrouping(graph, t)}};  // throws
  Tensor rest = t;     // [rank dimensions of groups, the groups from the outermost in]
  unsigned total = 1;  // elements of these groups together
  for (;;) {
    GroupingInfo best{0, 1};
    for (unsigned d = 0; d < rank; ++d) {
      if (rest.dim(d) == 1) continue;
      const unsigned all =
          detectInnermostGrouping(graph, rest.dimRoll(d, rank - 1).flatten(rank - 1, rest.rank()));
      const unsigned size =
          all % total != 0 ? 1 : std::gcd(all / total, static_cast<unsigned>(rest.dim(d)));
      if (size > best.second) best = {d, size};
    }
    const auto [d, size] = best;
    if (size == 1) return groupings;
    groupings.push_back(best);
    total *= size;
    rest = rest.reshapePartial(d, d + 1, {rest.dim(d) / size, size}).dimRoll(d + 1, rank);
  }
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
