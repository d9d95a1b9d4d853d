#include "gcl/CollectiveBalancedReorder.hpp"

#include <cstring>

#include "poplar/exceptions.hpp"

namespace gcl {

using poplar::Interval;
using poplar::Tensor;

void CollectiveBalancedHostRearrangement::rearrangeForCollective(const char* in, char* out,
                                                                 std::int64_t elemByteSize) const {
  const auto bytes = static_cast<std::size_t>(elemByteSize);
  for (const Interval& slice : gatheredToRefSlices) {
    std::memcpy(out + slice.begin() * bytes, in, slice.size() * bytes);
    in += slice.size() * bytes;
  }
}

void CollectiveBalancedHostRearrangement::undoRearrangeForCollective(
    const char* in, char* out, std::int64_t elemByteSize) const {
  const auto bytes = static_cast<std::size_t>(elemByteSize);
  for (const Interval& slice : gatheredToRefSlices) {
    std::memcpy(out, in + slice.begin() * bytes, slice.size() * bytes);
    out += slice.size() * bytes;
  }
}

CollectiveBalancedReorder::CollectiveBalancedReorder(poplar::Graph& graph, Tensor tensor,
                                                     unsigned replicationFactor,
                                                     const poplar::DebugNameAndId& dnai,
                                                     bool /*allowElementMap*/, unsigned grainSize)
    : graph_(graph), dnai_(dnai), shape_(tensor.shape()) {
  if (replicationFactor == 0)
    throw poplar::poplar_error(
        "[gcl::CollectiveBalancedReorder] needs at least one replica; got 0. Use the graph's "
        "replication factor.");
  if (grainSize == 0)
    throw poplar::poplar_error(
        "[gcl::CollectiveBalancedReorder] needs grains of at least one element; got 0. Use 1 for "
        "no grains.");
  const std::size_t round = std::size_t{replicationFactor} * grainSize;
  host_.replicationFactor = replicationFactor;
  const auto mapping = graph.getTileMapping(tensor);
  for (const auto& regions : mapping) {
    std::size_t elements = 0;
    for (const Interval& region : regions) elements += region.size();
    on_tile_.push_back((elements + round - 1) / round * grainSize);
    host_.totalElementsPerReplica += on_tile_.back();
  }
  // Element i of a tile goes to replica i / on_tile_, after the elements of earlier tiles.
  std::vector<std::size_t> place(tensor.numElements());
  std::size_t before = 0;
  for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
    std::size_t i = 0;
    for (const Interval& region : mapping[tile]) {
      for (std::size_t element = region.begin(); element < region.end(); ++element, ++i)
        place[element] =
            i / on_tile_[tile] * host_.totalElementsPerReplica + before + i % on_tile_[tile];
    }
    before += on_tile_[tile];
  }
  auto& slices = host_.gatheredToRefSlices;
  for (const std::size_t at : place) {
    if (!slices.empty() && slices.back().end() == at)
      slices.back() = {slices.back().begin(), at + 1};
    else
      slices.emplace_back(at, at + 1);
  }
}

Tensor CollectiveBalancedReorder::create(const poplar::Type& type, unsigned slices,
                                         const std::string& name) {
  const std::size_t each = host_.totalElementsPerReplica;
  const Tensor t = graph_.addVariable(type, {slices * each}, {dnai_, name});
  poplar::Graph::TileToTensorMapping mapping(on_tile_.size());
  for (std::size_t slice = 0; slice < slices; ++slice) {
    std::size_t begin = slice * each;
    for (std::size_t tile = 0; tile < on_tile_.size(); ++tile) {
      if (on_tile_[tile] > 0) mapping[tile].emplace_back(begin, begin + on_tile_[tile]);
      begin += on_tile_[tile];
    }
  }
  graph_.setTileMapping(t, mapping);
  return t;
}

Tensor CollectiveBalancedReorder::createReplicaSlice(const poplar::Type& type) {
  return create(type, 1, "slice");
}

Tensor CollectiveBalancedReorder::createCollectivesTensor(const poplar::Type& type,
                                                          const std::string& debugPrefix) {
  return create(type, host_.replicationFactor, debugPrefix);
}

Tensor CollectiveBalancedReorder::undoRearrangeForCollective(const Tensor& tensor) const {
  if (tensor.numElements() != getNumRearrangedTensorElems())
    throw poplar::poplar_error("[gcl::CollectiveBalancedReorder] needs a tensor of " +
                               std::to_string(getNumRearrangedTensorElems()) + " elements; got " +
                               tensor.shapeToString() + ". Make it with createCollectivesTensor.");
  if (host_.gatheredToRefSlices.empty()) return tensor.flatten().slice(0, 0).reshape(shape_);
  return poplar::concat(tensor.flatten().slices(host_.gatheredToRefSlices)).reshape(shape_);
}

}  // namespace gcl
