#include "popops/HostSliceTensor.hpp"

#include <algorithm>

#include "poputil/Util.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace {

/// The fewest bytes that a tile gets of data that the host reads or writes. Source: PopLibs
/// HostSliceTensor.cpp (earlier versions: 256 where the host writes).
constexpr std::size_t kPacketBytes = 1024;

/// Tiles reach the host through 32 exchange blocks: of each 64 tiles, 4 neighbours form a column
/// with one block for its even tiles and one for its odd tiles. (The same file.)
constexpr unsigned kBlocks = 32;
unsigned blockOf(unsigned tile) { return tile % 64 / 4 * 2 + tile % 2; }
unsigned distanceOf(unsigned block) {
  return block < kBlocks / 2 ? 2 * block : 2 * (kBlocks - 1 - block) + 1;
}

/// The order in which tiles get an extra packet: one tile of each block in turn, nearest block
/// first. The nearest tiles are the lowest in even blocks and the highest in odd ones.
std::vector<unsigned> tilesByDistance(unsigned num_tiles) {
  std::vector<std::vector<unsigned>> blocks(kBlocks);
  for (unsigned tile = 0; tile < num_tiles; ++tile)
    blocks[distanceOf(blockOf(tile))].push_back(tile);
  for (unsigned block = 1; block < kBlocks; block += 2)
    std::reverse(blocks[distanceOf(block)].begin(), blocks[distanceOf(block)].end());
  std::vector<unsigned> order;
  for (std::size_t rank = 0; order.size() < num_tiles; ++rank)
    for (const auto& tiles : blocks)
      if (rank < tiles.size()) order.push_back(tiles[rank]);
  return order;
}

std::size_t divideUp(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

/// The number of packets that each tile gets. Extra packets go to the tiles after those with the
/// `skipped` packets of other tensors.
std::vector<std::size_t> packetsOfTiles(std::size_t num_packets, unsigned num_tiles,
                                        std::size_t skipped) {
  std::vector<std::size_t> counts(num_tiles, num_packets / num_tiles);
  const auto order = tilesByDistance(num_tiles);
  for (std::size_t i = 0; i < num_packets % num_tiles; ++i)
    ++counts[(order[i] + skipped) % num_tiles];
  return counts;
}

/// Maps the packets of [rows, length] to tiles, evenly and in order, and returns the tile of the
/// first packet of each row.
std::vector<unsigned> mapByPackets(poplar::Graph& graph, const poplar::Tensor& t, std::size_t rows,
                                   std::size_t length, std::size_t offset) {
  const std::size_t packet = kPacketBytes / graph.getTarget().getTypeSize(t.elementType());
  const std::size_t per_row = divideUp(length, packet);
  const auto counts = packetsOfTiles(rows * per_row, graph.getTarget().getNumTiles(),
                                     divideUp(offset, kPacketBytes));
  poplar::Graph::TileToTensorMapping mapping(counts.size());
  std::vector<unsigned> firsts;
  std::size_t number = 0;
  for (unsigned tile = 0; tile < counts.size(); ++tile) {
    for (std::size_t i = 0; i < counts[tile]; ++i, ++number) {
      const std::size_t row = number / per_row;
      const std::size_t begin = number % per_row * packet;
      if (begin == 0) firsts.push_back(tile);
      mapping[tile].emplace_back(row * length + begin,
                                 row * length + std::min(length, begin + packet));
    }
    poputil::mergeAdjacentRegions(mapping[tile]);
  }
  graph.setTileMapping(t, mapping);
  return firsts;
}

}  // namespace

IndicesAndTensor createHostSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                           const std::vector<std::size_t>& shape, bool,
                                           std::size_t offset,
                                           const poplar::DebugContext& debugContext) {
  if (shape.size() != 2) {
    throw poputil::poplibs_error(
        "[popops::createHostSliceableTensor] needs a shape [indices, length]; got " +
        std::to_string(shape.size()) + " dimensions. Flatten each row.");
  }
  const auto indices =
      graph.addVariable(poplar::UNSIGNED_INT, {shape[0]}, {debugContext, "indices"});
  const auto tensor = graph.addVariable(type, shape, {debugContext, "tensor"});
  const auto tiles = mapByPackets(graph, tensor, shape[0], shape[1], offset);
  for (std::size_t i = 0; i < tiles.size(); ++i) graph.setTileMapping(indices[i], tiles[i]);
  return {indices, tensor};
}

IndicesAndTensor createHostSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                           const std::vector<std::size_t>& shape, bool isRead,
                                           const poplar::DebugContext& debugContext) {
  return createHostSliceableTensor(graph, type, shape, isRead, 0, debugContext);
}

poplar::Tensor createHostTransferableTensor(poplar::Graph& graph, const poplar::Type& type,
                                            const std::vector<std::size_t>& shape, bool,
                                            std::size_t offset,
                                            const poplar::DebugContext& debugContext) {
  const auto tensor = graph.addVariable(type, shape, debugContext);
  mapByPackets(graph, tensor, 1, tensor.numElements(), offset);
  return tensor;
}

poplar::Tensor createHostTransferableTensor(poplar::Graph& graph, const poplar::Type& type,
                                            const std::vector<std::size_t>& shape, bool isRead,
                                            const poplar::DebugContext& debugContext) {
  return createHostTransferableTensor(graph, type, shape, isRead, 0, debugContext);
}

}  // namespace popops
