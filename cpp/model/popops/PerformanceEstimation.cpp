#include "popops/PerformanceEstimation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/graph/Planning.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popops/internal/WindowCost.hpp"

// Estimates of updates with an operation follow PopLibs' popopsCycleEstimators.cpp; the others are
// the model's own.
namespace popops::internal {
namespace {

using elementwise::kLaunchCycles;
using ipujax::engine::ceilDiv;
using ipujax::engine::expr::Op;

std::uint64_t whole(double cycles) { return static_cast<std::uint64_t>(std::llround(cycles)); }

double binaryLoop(popops::expr::BinaryOpType op, const poplar::Type& in, const poplar::Type& out,
                  std::uint64_t n) {
  return elementwise::loopCycles(static_cast<Op>(op), in.element(), out.element(), n);
}

std::uint64_t onAllWorkers(const poplar::Target& target, popops::expr::BinaryOpType op,
                           const poplar::Type& in, const poplar::Type& out, std::uint64_t n) {
  const unsigned workers = target.getNumWorkerContexts();
  return whole(kLaunchCycles + workers * (11 + binaryLoop(op, in, out, ceilDiv(n, workers))));
}

/// Cycles to find the first of sorted offsets.
double searchCycles(unsigned num_offsets) {
  return 20 * std::ceil(std::log2(std::max(2U, num_offsets)));
}

/// Offsets that a worker looks at and finds on other tiles.
std::uint64_t outOfRange(unsigned num_offsets, unsigned in_range, unsigned workers) {
  const std::uint64_t looked_at = ceilDiv(num_offsets, workers);
  return looked_at > in_range ? looked_at - in_range : 0;
}

}  // namespace

std::uint64_t getDynamicSlice1DEstimate(const poplar::Target& target, const poplar::Type& type,
                                        unsigned regionSize, unsigned numSubElements) {
  return whole(dynamicSliceCycles(regionSize, numSubElements, target.getTypeSize(type),
                                  target.getNumWorkerContexts()));
}

std::uint64_t getBinaryOp1DInPlaceEstimate(const poplar::Target& target, const poplar::Type& type,
                                           popops::expr::BinaryOpType op, unsigned numElems) {
  return onAllWorkers(target, op, type, type, numElems);
}

std::uint64_t getMultiSliceCycleEstimate(const MultiSliceTargetParameters& targetParams,
                                         unsigned elemsPerSlice, unsigned numOffsets,
                                         unsigned numOffsetsInRangePerWorker, unsigned /*of each*/,
                                         bool isUpdate, bool indicesAreSorted, bool /*splits*/) {
  const std::uint64_t workers = targetParams.numWorkerContexts;
  const std::uint64_t in_range = numOffsetsInRangePerWorker;
  const std::uint64_t looked_at =
      indicesAreSorted ? in_range : std::max(ceilDiv(numOffsets, workers), in_range);
  const std::uint64_t vector =
      std::max(1U, targetParams.dataPathWidth / (8 * targetParams.bytesPerElem));
  double worker = sliceVertexCycles(isUpdate ? SliceWork::kWrite : SliceWork::kRead, elemsPerSlice,
                                    looked_at, in_range, vector, targetParams.bytesPerElem);
  if (indicesAreSorted) worker += searchCycles(numOffsets);
  return workers * whole(worker);
}

std::uint64_t getMultiUpdateOpCycleEstimate(const MultiUpdateOpTargetParameters& targetParams,
                                            bool subWordWritesRequired, unsigned elemsPerSlice,
                                            unsigned numOffsets,
                                            unsigned numOffsetsInRangePerWorker,
                                            unsigned /*of each*/, Operation /*op*/, bool scaled,
                                            bool /*precision*/, bool indicesAreSorted) {
  const std::uint64_t workers = targetParams.numWorkerContexts;
  const std::uint64_t words = ceilDiv(std::uint64_t{elemsPerSlice} * targetParams.bytesPerElem,
                                      targetParams.atomicWriteSize);
  const std::uint64_t row = subWordWritesRequired
                                ? 20 * std::uint64_t{elemsPerSlice}
                                : 12 + 3 * (std::max<std::uint64_t>(words, 1) - 1);
  std::uint64_t worker = (scaled ? 36 : 32) + numOffsetsInRangePerWorker * row;
  worker += indicesAreSorted ? whole(searchCycles(numOffsets))
                             : 5 * outOfRange(numOffsets, numOffsetsInRangePerWorker,
                                              static_cast<unsigned>(workers));
  return workers * worker;
}

std::uint64_t getCast2DCycleEstimate(const CastTargetParameters& /*sizes*/,
                                     const poplar::Type& fromType, const poplar::Type& toType,
                                     std::vector<unsigned>& elemCounts) {
  double cycles = 19;
  for (const unsigned n : elemCounts)
    cycles += elementwise::loopCycles(Op::kCast, fromType.element(), toType.element(), n);
  return whole(cycles);
}
std::uint64_t getCast1DSingleWorkerCycleEstimate(const CastTargetParameters& targetParams,
                                                 const poplar::Type& fromType,
                                                 const poplar::Type& toType, unsigned numElems) {
  std::vector<unsigned> one{numElems};
  return getCast2DCycleEstimate(targetParams, fromType, toType, one);
}
std::uint64_t getCast1DCycleEstimate(const CastTargetParameters& targetParams,
                                     const poplar::Type& fromType, const poplar::Type& toType,
                                     unsigned numElems) {
  return whole(elementwise::castCycles(fromType.element(), toType.element(), numElems,
                                       targetParams.numWorkerContexts));
}

std::uint64_t getFill1DCycleEstimate(const FillTargetParameters& /*sizes*/,
                                     const poplar::Type& type, unsigned numElems) {
  return whole(elementwise::fillCycles(type.element(), numElems, 1));
}
std::uint64_t getFill2DCycleEstimate(const FillTargetParameters& targetParams,
                                     const poplar::Type& type,
                                     const std::vector<unsigned>& numElems) {
  return std::accumulate(numElems.begin(), numElems.end(), std::uint64_t{0},
                         [&](std::uint64_t sum, unsigned n) {
                           return sum + getFill1DCycleEstimate(targetParams, type, n);
                         });
}

std::uint64_t getScaledArithmeticSupervisorCycleEstimate(
    const ScaledArithmeticTargetParameters& targetParams, const poplar::Type& dataType,
    const poplar::Type& /*of B*/, bool /*constant*/, bool /*constrained*/,
    ScaledArithmeticOp /*operation*/, const poplar::layout::Vector& /*of A*/,
    const poplar::layout::Vector& /*of B*/, unsigned numElems) {
  return whole(
      elementwise::scaledAddCycles(dataType.element(), numElems, targetParams.numWorkerContexts));
}

poplar::VertexPerfEstimate broadcastArithmetic1DCycleEstimate(
    const poplar::Target& target, popops::expr::BinaryOpType op, const poplar::Type& inType,
    const poplar::Type& outType, bool /*inPlace*/, std::size_t dataSize) {
  return {onAllWorkers(target, op, inType, outType, dataSize), dataSize};
}
poplar::VertexPerfEstimate broadcastArithmeticCycleEstimate(const poplar::Target& /*target*/,
                                                            popops::expr::BinaryOpType op,
                                                            const poplar::Type& inType,
                                                            const poplar::Type& outType,
                                                            bool /*inPlace*/, bool /*uniform*/,
                                                            const std::vector<std::size_t>& data) {
  double cycles = 11;
  std::uint64_t elements = 0;
  for (const std::size_t n : data) {
    cycles += binaryLoop(op, inType, outType, n);
    elements += n;
  }
  return {whole(cycles), elements};
}

}  // namespace popops::internal
