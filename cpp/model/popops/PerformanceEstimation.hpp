#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "poplar/PerfEstimateFunc.hpp"
#include "poplar/Target.hpp"
#include "poplar/Type.hpp"
#include "poplar/VectorLayout.hpp"
#include "popops/ExprOp.hpp"
#include "popops/Operation.hpp"

/// Tile cycles of the vertices that PopLibs makes, for planners. The SDK publishes this header
/// without guarantees. Here each function returns what the model charges for the same work, except
/// getMultiUpdateOpCycleEstimate, which follows PopLibs' estimators where the model has none.
/// Source of names: PopLibs include/popops/PerformanceEstimation.hpp.
namespace popops::internal {

/// Finding and updating rows of a table on one tile: sizes of a target and a type.
struct MultiSliceTargetParameters {
  MultiSliceTargetParameters(const poplar::Target& target, const poplar::Type& type)
      : atomicWriteSize(static_cast<unsigned>(target.getAtomicStoreGranularity())),
        dataPathWidth(target.getDataPathWidth()),
        bytesPerElem(static_cast<unsigned>(target.getTypeSize(type))),
        numWorkerContexts(target.getNumWorkerContexts()) {}
  unsigned atomicWriteSize;
  unsigned dataPathWidth;
  unsigned bytesPerElem;
  unsigned numWorkerContexts;
};
struct MultiUpdateOpTargetParameters {
  MultiUpdateOpTargetParameters(const poplar::Target& target, const poplar::Type& type)
      : atomicWriteSize(static_cast<unsigned>(target.getAtomicStoreGranularity())),
        numWorkerContexts(target.getNumWorkerContexts()),
        bytesPerElem(static_cast<unsigned>(target.getTypeSize(type))) {}
  unsigned atomicWriteSize;
  unsigned numWorkerContexts;
  unsigned bytesPerElem;
};
struct CastTargetParameters {
  CastTargetParameters(const poplar::Target& target, const poplar::Type& fromType,
                       const poplar::Type& toType)
      : numWorkerContexts(target.getNumWorkerContexts()),
        dataPathWidth(target.getDataPathWidth()),
        fromTypeSize(static_cast<unsigned>(target.getTypeSize(fromType))),
        toTypeSize(static_cast<unsigned>(target.getTypeSize(toType))) {}
  unsigned numWorkerContexts;
  unsigned dataPathWidth;
  unsigned fromTypeSize;
  unsigned toTypeSize;
};
struct FillTargetParameters {
  FillTargetParameters(const poplar::Target& target)  // NOLINT: as in the SDK
      : dataPathWidth(target.getDataPathWidth()) {}
  unsigned dataPathWidth;
};
struct ScaledArithmeticTargetParameters {
  ScaledArithmeticTargetParameters(const poplar::Target& target, const poplar::Type& dataType)
      : numWorkerContexts(target.getNumWorkerContexts()),
        vectorWidth(target.getVectorWidth(dataType)) {}
  unsigned numWorkerContexts;
  unsigned vectorWidth;
};
enum class ScaledArithmeticOp { ADD, SUBTRACT, AXPLUSBY, AXMINUSBY };

/// A slice of `numSubElements` elements out of `regionSize` by a vertex of all workers.
std::uint64_t getDynamicSlice1DEstimate(const poplar::Target& target, const poplar::Type& type,
                                        unsigned regionSize, unsigned numSubElements);
/// `op` on `numElems` elements, in place, by a vertex of all workers.
std::uint64_t getBinaryOp1DInPlaceEstimate(const poplar::Target& target, const poplar::Type& type,
                                           popops::expr::BinaryOpType op, unsigned numElems);
/// Slices of `elemsPerSlice` elements: all workers look at `numOffsets` offsets, of which
/// `numOffsetsInRangePerWorker` are on this tile for each worker.
std::uint64_t getMultiSliceCycleEstimate(const MultiSliceTargetParameters& targetParams,
                                         unsigned elemsPerSlice, unsigned numOffsets,
                                         unsigned numOffsetsInRangePerWorker,
                                         unsigned offsetsPerDictEntry, bool isUpdate = false,
                                         bool indicesAreSorted = false,
                                         bool splitSingleRegion = false);
/// The same for rows that are added to the table's, or combined with them by another `op`.
std::uint64_t getMultiUpdateOpCycleEstimate(const MultiUpdateOpTargetParameters& targetParams,
                                            bool subWordWritesRequired, unsigned elemsPerSlice,
                                            unsigned numOffsets,
                                            unsigned numOffsetsInRangePerWorker,
                                            unsigned offsetsPerDictEntry, Operation op, bool scaled,
                                            bool scaleHigherPrecisionThanData = false,
                                            bool indicesAreSorted = false);

/// Casts several regions by one worker, one region by one worker, and one by all workers.
std::uint64_t getCast2DCycleEstimate(const CastTargetParameters& targetParams,
                                     const poplar::Type& fromType, const poplar::Type& toType,
                                     std::vector<unsigned>& elemCounts);
std::uint64_t getCast1DSingleWorkerCycleEstimate(const CastTargetParameters& targetParams,
                                                 const poplar::Type& fromType,
                                                 const poplar::Type& toType, unsigned numElems);
std::uint64_t getCast1DCycleEstimate(const CastTargetParameters& targetParams,
                                     const poplar::Type& fromType, const poplar::Type& toType,
                                     unsigned numElems);
/// One worker that fills one region, or several.
std::uint64_t getFill1DCycleEstimate(const FillTargetParameters& targetParams,
                                     const poplar::Type& type, unsigned numElems);
std::uint64_t getFill2DCycleEstimate(const FillTargetParameters& targetParams,
                                     const poplar::Type& type,
                                     const std::vector<unsigned>& numElems);
/// a X + b Y on `numElems` elements. The model charges every `operation` and layout the same.
std::uint64_t getScaledArithmeticSupervisorCycleEstimate(
    const ScaledArithmeticTargetParameters& targetParams, const poplar::Type& dataType,
    const poplar::Type& dataBType, bool isConstant, bool memConstrained,
    ScaledArithmeticOp operation, const poplar::layout::Vector& aLayout,
    const poplar::layout::Vector& bLayout, unsigned numElems);
/// `op` with a scalar as one operand, by all workers, and by one worker on several regions.
poplar::VertexPerfEstimate broadcastArithmetic1DCycleEstimate(const poplar::Target& target,
                                                              popops::expr::BinaryOpType op,
                                                              const poplar::Type& inType,
                                                              const poplar::Type& outType,
                                                              bool inPlace, std::size_t dataSize);
poplar::VertexPerfEstimate broadcastArithmeticCycleEstimate(const poplar::Target& target,
                                                            popops::expr::BinaryOpType op,
                                                            const poplar::Type& inType,
                                                            const poplar::Type& outType,
                                                            bool inPlace, bool uniformScalar,
                                                            const std::vector<std::size_t>& data);

}  // namespace popops::internal
