#pragma once
#include <memory>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace poputil {

/// Spreads the elements evenly, in order, over the graph's tiles: each tile gets a multiple of
/// grainSize elements and, while there are enough, at least minElementsPerTile. The first tile is
/// `offset`, counted down from the last tile if the order is not ascending; mappings that need
/// fewer than all tiles start where popx::setLayoutGroup says.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         poplar::ArrayRef<std::size_t> shape,
                                                         unsigned minElementsPerTile,
                                                         unsigned grainSize, unsigned offset = 0,
                                                         bool ascendingOrder = true);
/// At least 128 bytes per tile, in grains of one vector.
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

/// Number of elements by which the fullest tile exceeds an even mapping.
unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping& mapping,
                          unsigned minElementsPerTile = 0, unsigned grainSize = 1);
unsigned getTileImbalance(const poplar::Graph& graph, const poplar::Tensor& t,
                          unsigned minElementsPerTile = 0, unsigned grainSize = 1);

/// If the imbalance is above the threshold, moves elements from tiles with more than an even share
/// to tiles with fewer, in whole grains and last elements first. Without sizes: at least 128 bytes
/// per tile, in grains of one vector.
void rebalanceTensor(poplar::Graph& graph, const poplar::Tensor& t, unsigned minElementsPerTile,
                     unsigned grainSize, unsigned imbalanceThreshold);
void rebalanceTensor(poplar::Graph& graph, const poplar::Tensor& t);

/// Whether elements along a dimension lie on more than one tile, or IPU.
bool dimIsSplitOverTiles(const poplar::Graph& graph, const poplar::Tensor& t, unsigned dimension);
bool dimIsSplitOverIPUs(const poplar::Graph& graph, const poplar::Tensor& t, unsigned dimension);

/// A clone on another IPU, mapped to the same tiles there as `t` on its own IPU.
poplar::Tensor cloneToIpu(
    poplar::Graph& graph, const poplar::Tensor& t, unsigned dstIPU,
    const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// The same; also returns the tensors of the copy, which the caller adds.
poplar::Tensor createIpuCopy(
    poplar::Graph& graph, const poplar::Tensor& t, unsigned dstIpu, poplar::Tensor& copySrc,
    poplar::Tensor& copyDst, const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);

/// A clone in another graph, mapped to the same tiles there as `t` in `srcGraph`. Throws
/// poplibs_error if dstGraph has too few tiles.
poplar::Tensor cloneToGraph(
    poplar::Graph& srcGraph, poplar::Graph& dstGraph, const poplar::Tensor& t,
    const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

/// Maps the output of an elementwise operation like the input whose fullest tile has fewest
/// elements, among inputs mapped in whole grains with at least minGrainsPerTile on each tile used;
/// linearly if there is none. popops::createOutputForElementWiseOp is its successor.
void mapOutputForElementWiseOp(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
                               const poplar::Tensor& output, unsigned grainSize = 1,
                               unsigned minGrainsPerTile = 0);

class TensorUseTrackerState;

/// Tracks which tiles use which elements of variables, and maps elements near their uses: those
/// used by the same tiles are spread evenly over these tiles.
class TensorUseTracker {
 public:
  enum class MappingMethod {
    /// An element used by all tiles of a neighbouring element, and more, is mapped like it.
    OptimizeHaloRegions,
    /// Elements lie only on tiles that use them, even if that splits grains.
    ConstrainMappingToUsedTiles,
    None
  };

  TensorUseTracker(unsigned numTiles);
  TensorUseTracker(const TensorUseTracker& other);
  TensorUseTracker(TensorUseTracker&& other) noexcept;
  TensorUseTracker& operator=(const TensorUseTracker& other);
  TensorUseTracker& operator=(TensorUseTracker&& other) noexcept;
  ~TensorUseTracker();

  /// Throws poplibs_error for a tile not below numTiles.
  void add(const poplar::Graph& graph, unsigned tile, const poplar::Tensor& t);
  void add(TensorUseTracker other);

  /// Leaves one use of each element, on the tile that it would be mapped to. With
  /// extendPartialUsage, unused elements of these variables go with their neighbours.
  void resolve(const poplar::Graph& graph, unsigned grainSize, unsigned minElementsPerTile,
               bool extendPartialUsage = false, MappingMethod mappingMethod = MappingMethod::None);
  /// Maps all used elements.
  void mapTensorsByUse(poplar::Graph& graph, unsigned grainSize, unsigned minElementsPerTile,
                       bool extendPartialUsage = false,
                       MappingMethod mappingMethod = MappingMethod::None);
  /// The forms without a MappingMethod, of older SDKs.
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

/// A vector as long as dimension `dim` of `fullTensor`, each element on a tile that has elements
/// with its index. `ditherMapping` has no effect.
poplar::Tensor createBroadcastOperand(poplar::Graph& graph, const poplar::Tensor& fullTensor,
                                      const poplar::Type& type, unsigned dim,
                                      bool ditherMapping = false,
                                      const poplar::DebugContext& debugContext = {});

/// Copies `t` to a new tensor on another IPU, mapped to the same tiles there as `t` on its own IPU.
/// `masterGraph` is the graph of all IPUs.
poplar::Tensor copyToIpu(
    poplar::Graph& masterGraph, const poplar::Tensor& t, poplar::program::Sequence& prog,
    unsigned dstIPU, const poplar::DebugContext& debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

}  // namespace poputil
