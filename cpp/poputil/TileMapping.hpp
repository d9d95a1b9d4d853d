#pragma once
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
