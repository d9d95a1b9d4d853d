#include "poputil/Util.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "poplar/MetadataCreation.hpp"
#include "poputil/exceptions.hpp"
#include "poputil/internal/Aliases.hpp"

namespace poputil {
namespace {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;
using Regions = std::vector<Interval>;

/// Constraints on the parts of a split.
struct Limits {
  std::size_t grain;
  std::size_t parts;
  std::size_t least;
  std::size_t most;
  std::size_t longest_region;
};

std::size_t divideUp(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

/// Number of elements of each part: grains as even as possible, the rest in the last part.
std::vector<std::size_t> partSizes(std::size_t total, const Limits& limits) {
  if (total == 0) return {};
  const std::size_t grains = divideUp(total, limits.grain);
  const std::size_t least = std::max<std::size_t>(1, divideUp(limits.least, limits.grain));
  const std::size_t most = std::max<std::size_t>(1, limits.most / limits.grain);
  std::size_t parts = std::clamp<std::size_t>(grains / least, 1, limits.parts);
  parts = std::max(parts, divideUp(grains, most));
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = std::min(total, grains * i / parts * limits.grain);
    const std::size_t end = std::min(total, grains * (i + 1) / parts * limits.grain);
    if (end > begin) sizes.push_back(end - begin);
  }
  return sizes;
}

/// Cuts sequences of regions into parts of the sizes given, with no more than `longest` elements in
/// a sequence (or in a region, if not by_sequence).
std::vector<std::vector<Regions>> cut(const std::vector<Regions>& sequences,
                                      const std::vector<std::size_t>& sizes, std::size_t longest,
                                      bool by_sequence) {
  std::vector<std::vector<Regions>> parts(sizes.size());
  std::size_t part = 0;
  std::size_t room = sizes.empty() ? 0 : sizes[0];
  for (const Regions& sequence : sequences) {
    bool is_new = true;
    std::size_t used = 0;
    for (const Interval& region : sequence) {
      std::size_t at = region.begin();
      while (at < region.end()) {
        if (room == 0) {
          room = sizes[++part];
          is_new = true;
        }
        if (by_sequence && used == longest) is_new = true;
        if (is_new) used = 0;
        const std::size_t n = std::min({room, region.end() - at, longest - used});
        if (by_sequence) used += n;
        if (std::exchange(is_new, false)) parts[part].emplace_back();
        parts[part].back().emplace_back(at, at + n);
        at += n;
        room -= n;
      }
    }
  }
  return parts;
}

std::vector<std::vector<Regions>> split(const std::vector<Regions>& regions, const Limits& limits,
                                        bool by_sequence) {
  std::size_t longest = std::max<std::size_t>(1, limits.longest_region);
  if (by_sequence && longest > limits.grain) longest -= longest % limits.grain;
  return cut(regions, partSizes(intervalSequenceNumElements(regions), limits), longest,
             by_sequence);
}

}  // namespace

void mergeAdjacentRegions(Regions& regions) {
  Regions merged;
  for (const Interval& region : regions) {
    if (!merged.empty() && merged.back().end() == region.begin()) {
      merged.back() = {merged.back().begin(), region.end()};
    } else {
      merged.push_back(region);
    }
  }
  regions = std::move(merged);
}

void mergeAdjacentRegions(std::vector<Regions>& mapping) {
  for (auto& regions : mapping) mergeAdjacentRegions(regions);
}

std::vector<std::vector<Regions>> splitRegions(const std::vector<Regions>& regions,
                                               unsigned grainSize, unsigned maxPartitions,
                                               unsigned minElementsPerPartition,
                                               unsigned maxElementsPerPartition,
                                               unsigned maxElementsPerRegion) {
  return split(regions,
               {std::max(1u, grainSize), std::max(1u, maxPartitions), minElementsPerPartition,
                maxElementsPerPartition, maxElementsPerRegion},
               true);
}

std::vector<Regions> splitRegions(const Regions& regions, unsigned grainSize,
                                  unsigned maxPartitions, unsigned minElementsPerPartition,
                                  unsigned maxElementsPerPartition, unsigned maxElementsPerRegion) {
  std::vector<Regions> parts;
  for (auto& part : split({regions},
                          {std::max(1u, grainSize), std::max(1u, maxPartitions),
                           minElementsPerPartition, maxElementsPerPartition, maxElementsPerRegion},
                          false))
    parts.push_back(std::move(part.front()));
  return parts;
}

std::vector<std::vector<Regions>> splitRegionsBetweenWorkers(const poplar::Target& target,
                                                             const std::vector<Regions>& regions,
                                                             unsigned grainSize,
                                                             unsigned minElementsPerPartition,
                                                             unsigned maxElementsPerPartition,
                                                             unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition,
                      maxElementsPerPartition, maxElementsPerRegion);
}

std::vector<Regions> splitRegionsBetweenWorkers(const poplar::Target& target,
                                                const Regions& regions, unsigned grainSize,
                                                unsigned minElementsPerPartition,
                                                unsigned maxElementsPerPartition,
                                                unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition,
                      maxElementsPerPartition, maxElementsPerRegion);
}

std::vector<Interval> calculateUnshufflingIntervals(const std::vector<Interval>& intervals) {
  std::map<std::size_t, Interval> by_origin;
  std::size_t at = 0;
  for (const Interval& interval : intervals) {
    if (interval.size() > 0) by_origin[interval.begin()] = {at, at + interval.size()};
    at += interval.size();
  }
  std::vector<Interval> back;
  for (const auto& entry : by_origin) back.push_back(entry.second);
  return back;
}

Regions flattenIntervals(const std::vector<Regions>& intervals) {
  Regions flat;
  for (const auto& regions : intervals) flat.insert(flat.end(), regions.begin(), regions.end());
  return flat;
}

std::size_t intervalSequenceNumElements(const std::vector<Regions>& seq) {
  std::size_t elements = 0;
  for (const auto& regions : seq) {
    for (const auto& region : regions) elements += region.size();
  }
  return elements;
}

Tensor duplicate(Graph& graph, const Tensor& in, poplar::program::Sequence& p,
                 const poplar::DebugContext& debugContext, poplar::TensorCloneMethod method) {
  const Tensor out = graph.clone(in, debugContext, method);
  const auto [from, to] = internal::withoutAliases(graph, in, out);
  p.add(poplar::program::Copy(from, to, false, debugContext));
  return out;
}

Tensor cloneN(Graph& graph, const Tensor& t, unsigned N, const poplar::DebugContext& debugContext,
              poplar::TensorCloneMethod method) {
  std::vector<Tensor> clones;
  for (unsigned i = 0; i < N; ++i)
    clones.push_back(graph.clone(t, debugContext, method).expand({0}));
  return poplar::concat(clones);
}

std::vector<int> balancedPartition(int rangeUpperBound, int splitCount) {
  std::vector<int> sizes;
  for (int i = 0; i < splitCount; ++i) {
    const auto bound = [&](int k) {
      return static_cast<int>(static_cast<long long>(rangeUpperBound) * k / splitCount);
    };
    sizes.push_back(bound(i + 1) - bound(i));
  }
  return sizes;
}

double castToDeviceHalfValue(const poplar::Target& target, double input) {
  std::uint16_t bits = 0;
  double back = 0;
  poplar::copyDoubleToDeviceHalf(target, &input, &bits, 1);
  poplar::copyDeviceHalfToDouble(target, &bits, &back, 1);
  return back;
}

bool checkAccuracyWhenCast(const poplar::Target& target, double input, poplar::Type,
                           poplar::Type outputType, double tolerance) {
  if (outputType != poplar::HALF)
    return std::abs(static_cast<float>(input) - input) <= tolerance * std::abs(input);
  const double back = castToDeviceHalfValue(target, input);
  return std::isfinite(back) && std::abs(back - input) <= tolerance * std::abs(input);
}

Tensor factorDims(const Tensor& t, const std::vector<std::size_t>& factors, unsigned startDim) {
  const auto n = static_cast<unsigned>(factors.size());
  std::vector<std::size_t> split;
  std::vector<unsigned> order;
  for (unsigned d = 0; d < t.rank(); ++d) {
    const bool factored = d >= startDim && d < startDim + n;
    const std::size_t factor = factored ? factors[d - startDim] : 1;
    if (startDim + n > t.rank() || factor == 0 || t.dim(d) % factor != 0)
      throw poplibs_error("[poputil::factorDims] needs factors that divide dimensions of " +
                          t.shapeToString() + "; got " + std::to_string(factor) +
                          " for dimension " + std::to_string(d) + ". Use a divisor.");
    split.push_back(t.dim(d) / factor);
    if (factored) split.push_back(factor);
  }
  for (unsigned i = 0; i < t.rank() + n; ++i) order.push_back(i);
  for (unsigned i = 0; i < n; ++i) {
    order[startDim + i] = startDim + 2 * i;
    order[startDim + n + i] = startDim + 2 * i + 1;
  }
  return t.reshape(split).dimShuffle(order);
}

Tensor unfactorDims(const Tensor& t, unsigned numDims, unsigned startDim) {
  if (startDim + 2 * numDims > t.rank())
    throw poplibs_error("[poputil::unfactorDims] needs two dimensions for each factor; got " +
                        std::to_string(numDims) + " factors of " + t.shapeToString() +
                        ". Pass what factorDims made.");
  std::vector<unsigned> order;
  for (unsigned d = 0; d < t.rank(); ++d) order.push_back(d);
  std::vector<std::size_t> joined(t.shape().begin(), t.shape().begin() + startDim);
  for (unsigned i = 0; i < numDims; ++i) {
    order[startDim + 2 * i] = startDim + i;
    order[startDim + 2 * i + 1] = startDim + numDims + i;
    joined.push_back(t.dim(startDim + i) * t.dim(startDim + numDims + i));
  }
  joined.insert(joined.end(), t.shape().begin() + startDim + 2 * numDims, t.shape().end());
  return t.dimShuffle(order).reshape(joined);
}

Tensor createMetadataTensor(Graph& graph, poplar::QuarterMetadata::Format fp8Format, int fp8Scale) {
  return poplar::createConstantMetadataTensor(graph, fp8Format, fp8Scale);
}

Tensor createMetadataTensor(Graph& graph, poplar::QuarterMetadata::Format fp8Format, int fp8Scale,
                            poplar::program::Sequence& prog) {
  const Tensor constant = createMetadataTensor(graph, fp8Format, fp8Scale);
  return duplicate(graph, constant, prog);
}

}  // namespace poputil
