#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

namespace popops::internal {

/// The mapping of the results of a reduction without exchange: each is on the tile that holds all
/// of its elements. nullopt if a result has elements on several tiles, or if a tile would hold part
/// of a word, which PopLibs avoids. Results are in the order of the kept dimensions.
std::optional<poplar::Graph::TileToTensorMapping> tileLocalMapping(
    const poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
    const poplar::Type& outType);

}  // namespace popops::internal
