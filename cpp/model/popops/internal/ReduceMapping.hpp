#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

namespace popops::internal {

/// Where the results of a reduction lie that needs no exchange: each on the tile that holds all of
/// its elements. Nothing where some result has elements on several tiles, or where a tile would
/// hold a part of a word, which PopLibs avoids. Results are in the order of the kept dimensions.
std::optional<poplar::Graph::TileToTensorMapping> tileLocalMapping(
    const poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
    const poplar::Type& outType);

}  // namespace popops::internal
