#include "popops/HostSliceTensor.hpp"

#include <algorithm>

#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace {

/// A tile gets at least so much of what the host sends or receives: PopLibs HostSliceTensor.cpp.
constexpr std::size_t kPacketBytes = 1024;

std::size_t divideUp(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

/// Maps the packets of [rows, length] to tiles, evenly and in their order, and gives the tile of
/// the first packet of each row.
std::vector<unsigned> mapByPackets(poplar::Graph& graph, const poplar::Tensor& t, std::size_t rows,
                                   std::size_t length) {
  const std::size_t packet = kPacketBytes / graph.getTarget().getTypeSize(t.elementType());
  const std::size_t per_row = divideUp(length, packet);
  const std::size_t num_tiles = graph.getTarget().getNumTiles();
  const std::size_t least = rows * per_row / num_tiles;
  const std::size_t fuller = rows * per_row % num_tiles;  // the first tiles have one packet more
  const auto tileOf = [&](std::size_t number) {
    const std::size_t in_fuller = fuller * (least + 1);
    return number < in_fuller ? number / (least + 1) : fuller + (number - in_fuller) / least;
  };
  poplar::Graph::TileToTensorMapping mapping(num_tiles);
  std::vector<unsigned> firsts;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < per_row; ++i) {
      const std::size_t tile = tileOf(row * per_row + i);
      if (i == 0) firsts.push_back(static_cast<unsigned>(tile));
      mapping[tile].emplace_back(row * length + i * packet,
                                 row * length + std::min(length, (i + 1) * packet));
    }
  }
  for (auto& regions : mapping) poputil::mergeAdjacentRegions(regions);
  graph.setTileMapping(t, mapping);
  return firsts;
}

}  // namespace

IndicesAndTensor createHostSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                           const std::vector<std::size_t>& shape, bool,
                                           const poplar::DebugContext& debugContext) {
  if (shape.size() != 2) {
    throw poputil::poplibs_error(
        "[popops::createHostSliceableTensor] needs a shape [indices, length]; got " +
        std::to_string(shape.size()) + " dimensions. Flatten each row.");
  }
  const auto indices =
      graph.addVariable(poplar::UNSIGNED_INT, {shape[0]}, {debugContext, "indices"});
  const auto tensor = graph.addVariable(type, shape, {debugContext, "tensor"});
  const auto tiles = mapByPackets(graph, tensor, shape[0], shape[1]);
  for (std::size_t i = 0; i < tiles.size(); ++i) graph.setTileMapping(indices[i], tiles[i]);
  return {indices, tensor};
}

poplar::Tensor createHostTransferableTensor(poplar::Graph& graph, const poplar::Type& type,
                                            const std::vector<std::size_t>& shape, bool,
                                            const poplar::DebugContext& debugContext) {
  const auto tensor = graph.addVariable(type, shape, debugContext);
  mapByPackets(graph, tensor, 1, tensor.numElements());
  return tensor;
}

}  // namespace popops
