#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace poputil {

/// Spreads the elements evenly, in order, over the graph's tiles: each tile gets a multiple of
/// grainSize elements and, while there are enough, at least minElementsPerTile. What needs fewer
/// than all tiles begins at tile 0, or where popx::setLayoutGroup says.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         poplar::ArrayRef<std::size_t> shape,
                                                         unsigned minElementsPerTile,
                                                         unsigned grainSize);
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph,
                                                         const poplar::Tensor& t);
void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t, unsigned minElementsPerTile,
                       unsigned grainSize);
/// At least 128 bytes a tile, in grains of a vector.
void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t);

/// A new tensor on another IPU, mapped to the tiles of that IPU as `t` is to those of its own, and
/// the copy to it. `masterGraph` is the graph of all IPUs.
poplar::Tensor copyToIpu(poplar::Graph& masterGraph, const poplar::Tensor& t,
                         poplar::program::Sequence& prog, unsigned dstIPU,
                         const poplar::DebugContext& debugContext = {});

}  // namespace poputil
