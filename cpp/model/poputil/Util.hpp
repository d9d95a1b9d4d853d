#pragma once
#include <cassert>
#include <climits>
#include <cstddef>
#include <string>
#include <vector>

#include "poplar/Device.hpp"
#include "poplar/Graph.hpp"
#include "poplar/MetadataCreation.hpp"
#include "poplar/Program.hpp"
#include "poplar/Quarter.hpp"
#include "poplar/Target.hpp"
#include "poplar/Tensor.hpp"
#include "poputil/VertexTemplates.hpp"

namespace poputil {

// SDK 3.0 had these here.
using poplar::createConstantMetadataTensor;
using poplar::createVariableMetadataTensor;

/// Merges regions that begin where the previous one ends.
void mergeAdjacentRegions(std::vector<poplar::Interval>& regions);
void mergeAdjacentRegions(std::vector<std::vector<poplar::Interval>>& mapping);

/// The regions of all tiles in one list, in their order.
std::vector<poplar::Interval> flattenIntervals(
    const std::vector<std::vector<poplar::Interval>>& intervals);

/// Splits regions into at most maxPartitions parts of about equal size, cutting regions for
/// balance. Each part has a multiple of grainSize (except the last) and minElementsPerPartition to
/// maxElementsPerPartition elements; no region is longer than maxElementsPerRegion.
std::vector<std::vector<poplar::Interval>> splitRegions(
    const std::vector<poplar::Interval>& regions, unsigned grainSize, unsigned maxPartitions,
    unsigned minElementsPerPartition = 0, unsigned maxElementsPerPartition = UINT_MAX,
    unsigned maxElementsPerRegion = UINT_MAX);
std::vector<std::vector<std::vector<poplar::Interval>>> splitRegions(
    const std::vector<std::vector<poplar::Interval>>& regions, unsigned grainSize,
    unsigned maxPartitions, unsigned minElementsPerPartition = 0,
    unsigned maxElementsPerPartition = UINT_MAX, unsigned maxElementsPerRegion = UINT_MAX);

/// The same with one part for each worker of a tile.
std::vector<std::vector<poplar::Interval>> splitRegionsBetweenWorkers(
    const poplar::Target& target, const std::vector<poplar::Interval>& regions, unsigned grainSize,
    unsigned minElementsPerPartition = 0, unsigned maxElementsPerPartition = UINT_MAX,
    unsigned maxElementsPerRegion = UINT_MAX);
std::vector<std::vector<std::vector<poplar::Interval>>> splitRegionsBetweenWorkers(
    const poplar::Target& target, const std::vector<std::vector<poplar::Interval>>& regions,
    unsigned grainSize, unsigned minElementsPerPartition = 0,
    unsigned maxElementsPerPartition = UINT_MAX, unsigned maxElementsPerRegion = UINT_MAX);

/// The indices of element `index` of a row-major array, and back.
template <class T>
std::vector<T> unflattenIndex(const std::vector<T>& shape, std::size_t index) {
  std::vector<T> indices(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i])
    indices[i] = static_cast<T>(index % shape[i]);
  assert(index == 0);
  return indices;
}
template <class T>
std::size_t flattenIndex(const std::vector<T>& shape, const std::vector<T>& indices) {
  assert(indices.size() == shape.size());
  std::size_t index = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + indices[i];
  return index;
}

/// Intervals that undo the order of `intervals`, which cover 0 .. n - 1: these intervals of the
/// shuffled elements, one after another, give the original order.
std::vector<poplar::Interval> calculateUnshufflingIntervals(
    const std::vector<poplar::Interval>& intervals);

std::size_t intervalSequenceNumElements(const std::vector<std::vector<poplar::Interval>>& seq);

/// Copies a tensor to a new one with the same mapping.
poplar::Tensor duplicate(
    poplar::Graph& graph, const poplar::Tensor& in, poplar::program::Sequence& p,
    const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

/// N clones of `t` with shape [...]: shape [N, ...].
poplar::Tensor cloneN(
    poplar::Graph& graph, const poplar::Tensor& t, unsigned N,
    const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

/// `splitCount` numbers that differ by at most 1 and add up to `rangeUpperBound`, with the larger
/// ones spread evenly.
std::vector<int> balancedPartition(int rangeUpperBound, int splitCount);

/// `input` rounded to HALF as the device rounds, as a double; infinite beyond HALF's range.
double castToDeviceHalfValue(const poplar::Target& target, double input);

/// Whether `input`, of inputType, is within `tolerance` (relative) when cast to outputType and
/// back, without overflow.
bool checkAccuracyWhenCast(const poplar::Target& target, double input, poplar::Type inputType,
                           poplar::Type outputType, double tolerance);

/// Splits each dimension startDim + i, of size n, into n / factors[i] and factors[i], and moves the
/// factors after all quotients: [4, 6, 4] by {1, 2} is [4, 3, 1, 2, 4]. Throws poplibs_error for
/// factors that do not divide their dimension or exceed the rank.
poplar::Tensor factorDims(const poplar::Tensor& t, const std::vector<std::size_t>& factors,
                          unsigned startDim = 0);
/// The inverse of factorDims with `numDims` factors.
poplar::Tensor unfactorDims(const poplar::Tensor& t, unsigned numDims, unsigned startDim = 0);

/// One element of QUARTER_METADATA on tile 0: a constant, or a variable that `prog` sets.
poplar::Tensor createMetadataTensor(poplar::Graph& graph, poplar::QuarterMetadata::Format fp8Format,
                                    int fp8Scale);
poplar::Tensor createMetadataTensor(poplar::Graph& graph, poplar::QuarterMetadata::Format fp8Format,
                                    int fp8Scale, poplar::program::Sequence& prog);

}  // namespace poputil
