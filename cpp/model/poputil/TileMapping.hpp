#pragma once
#include <memory>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace poputil {

/// Spreads the elements evenly, in order, over the graph's tiles: each tile gets a multiple of
/// grainSize elements and, while there are enough, at least minElementsPerTile. The first tile is
/// `offset`, counted from the last tile down where the order is not ascending, and from where
/// popx::setLayoutGroup says for what needs fewer than all tiles.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         poplar::ArrayRef<std::size_t> shape,
                                                         unsigned minElementsPerTile,
                                                         unsigned grainSize, unsigned offset = 0,
                                                         bool ascendingOrder = true);
/// At least 128 bytes a tile, in grains of a vector.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         const poplar::Tensor& t,
                                                         unsigned offset = 0,
                                                         bool ascendingOrder = true);
void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t, unsigned minElementsPerTile,
                       unsigned grainSize);
void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t);
void mapTensorLinearlyWithOffset(poplar::Graph& graph, const poplar::Tensor& t,
                                 unsigned minElementsPerTile, unsigned grainSize, unsigned offset,
                                 bool ascendingOrder = true);
void mapTensorLinearlyWithOffset(poplar::Graph& graph, const poplar::Tensor& t, unsigned offset = 0,
                                 bool ascendingOrder = true);

/// How many elements the fullest tile has more than in an even mapping.
unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping& mapping,
                          unsigned minElementsPerTile = 0, unsigned grainSize = 1);
unsigned getTileImbalance(const poplar::Graph& graph, const poplar::Tensor& t,
                          unsigned minElementsPerTile = 0, unsigned grainSize = 1);

/// Moves elements from tiles that have more than in an even mapping to those that have fewer, the
/// last ones of each first and in whole grains, if the imbalance is above the threshold. Without
/// sizes: at least 128 bytes a tile, in grains of a vector.
void rebalanceTensor(poplar::Graph& graph, const poplar::Tensor& t, unsigned minElementsPerTile,
                     unsigned grainSize, unsigned imbalanceThreshold);
void rebalanceTensor(poplar::Graph& graph, const poplar::Tensor& t);

/// Whether elements along a dimension lie on more than one tile, or IPU.
bool dimIsSplitOverTiles(const poplar::Graph& graph, const poplar::Tensor& t, unsigned dimension);
bool dimIsSplitOverIPUs(const poplar::Graph& graph, const poplar::Tensor& t, unsigned dimension);

/// A clone on another IPU, mapped to its tiles as `t` is to those of its own.
poplar::Tensor cloneToIpu(
    poplar::Graph& graph, const poplar::Tensor& t, unsigned dstIPU,
    const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// The same, and the tensors of the copy, which the caller adds.
poplar::Tensor createIpuCopy(
    poplar::Graph& graph, const poplar::Tensor& t, unsigned dstIpu, poplar::Tensor& copySrc,
    poplar::Tensor& copyDst, const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);

/// A clone in another graph, mapped to its tiles as `t` is to those of `srcGraph`. Throws
/// poplibs_error where dstGraph has too few tiles.
poplar::Tensor cloneToGraph(
    poplar::Graph& srcGraph, poplar::Graph& dstGraph, const poplar::Tensor& t,
    const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

/// Maps the output of an elementwise operation as the input whose fullest tile has fewest elements,
/// of those that are mapped in whole grains, at least so many on a tile that has any; linearly
/// where there is none. popops::createOutputForElementWiseOp is its successor.
void mapOutputForElementWiseOp(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
                               const poplar::Tensor& output, unsigned grainSize = 1,
                               unsigned minGrainsPerTile = 0);

class TensorUseTrackerState;

/// Which tiles use which elements of variables. Elements are then mapped near their uses: those
/// that the same tiles use are spread evenly over these.
class TensorUseTracker {
 public:
  enum class MappingMethod {
    /// An element that the tiles of a neighbouring element use, and more, is mapped as it is.
    OptimizeHaloRegions,
    /// Elements lie only on tiles that use them, even where that splits grains.
    ConstrainMappingToUsedTiles,
    None
  };

  TensorUseTracker(unsigned numTiles);
  TensorUseTracker(const TensorUseTracker& other);
  TensorUseTracker(TensorUseTracker&& other) noexcept;
  TensorUseTracker& operator=(const TensorUseTracker& other);
  TensorUseTracker& operator=(TensorUseTracker&& other) noexcept;
  ~TensorUseTracker();

  /// Throws poplibs_error for a tile that is not one of numTiles.
  void add(const poplar::Graph& graph, unsigned tile, const poplar::Tensor& t);
  void add(TensorUseTracker other);

  /// Leaves one use of each element: that on the tile to which it would be mapped. With
  /// extendPartialUsage, elements of these variables that nothing uses go with their neighbours.
  void resolve(const poplar::Graph& graph, unsigned grainSize, unsigned minElementsPerTile,
               bool extendPartialUsage = false, MappingMethod mappingMethod = MappingMethod::None);
  /// Maps all elements that are used.
  void mapTensorsByUse(poplar::Graph& graph, unsigned grainSize, unsigned minElementsPerTile,
                       bool extendPartialUsage = false,
                       MappingMethod mappingMethod = MappingMethod::None);
  /// The forms before there was a MappingMethod.
  void resolve(const poplar::Graph& graph, unsigned grainSize, unsigned minElementsPerTile,
               bool optimizeHaloRegions, bool extendPartialUsage) {
    resolve(graph, grainSize, minElementsPerTile, extendPartialUsage, halos(optimizeHaloRegions));
  }
  void mapTensorsByUse(poplar::Graph& graph, unsigned grainSize, unsigned minElementsPerTile,
                       bool optimizeHaloRegions, bool extendPartialUsage) {
    mapTensorsByUse(graph, grainSize, minElementsPerTile, extendPartialUsage,
                    halos(optimizeHaloRegions));
  }
  bool empty() const;

 private:
  static MappingMethod halos(bool optimised) {
    return optimised ? MappingMethod::OptimizeHaloRegions : MappingMethod::None;
  }

  std::unique_ptr<TensorUseTrackerState> st_;
};

/// A vector as long as dimension `dim` of `fullTensor`, each element on a tile that has elements of
/// its index. Dithering has no effect.
poplar::Tensor createBroadcastOperand(poplar::Graph& graph, const poplar::Tensor& fullTensor,
                                      const poplar::Type& type, unsigned dim,
                                      bool ditherMapping = false,
                                      const poplar::DebugContext& debugContext = {});

/// A new tensor on another IPU, mapped to the tiles of that IPU as `t` is to those of its own, and
/// the copy to it. `masterGraph` is the graph of all IPUs.
poplar::Tensor copyToIpu(
    poplar::Graph& masterGraph, const poplar::Tensor& t, poplar::program::Sequence& prog,
    unsigned dstIPU, const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

}  // namespace poputil
