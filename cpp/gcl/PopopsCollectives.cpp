// popops/Collectives.hpp by gcl, which stands above popops, and the other way round.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gcl/Collectives.hpp"
#include "popops/Collectives.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

namespace {

/// The elements of `data` on each IPU of a replica that has some, in the order of the IPUs.
std::vector<std::pair<unsigned, Tensor>> byIpu(const Graph& graph, const Tensor& data) {
  const auto mapping = graph.getTileMapping(data, false);
  const unsigned tiles = graph.getTarget().getTilesPerIPU();
  std::map<unsigned, std::vector<poplar::Interval>> on;
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const poplar::Interval& interval : mapping[tile]) on[tile / tiles].push_back(interval);
  std::vector<std::pair<unsigned, Tensor>> parts;
  for (auto& [ipu, intervals] : on) {
    std::sort(intervals.begin(), intervals.end(),
              [](const auto& a, const auto& b) { return a.begin() < b.begin(); });
    parts.emplace_back(ipu, poplar::concat(data.slices(intervals)));
  }
  return parts;
}

}  // namespace

Tensor replicatedAllReduce(Graph& graph, const Tensor& data, CollectiveOperator op, Sequence& prog,
                           const DebugContext& debugContext, const OptionFlags& options) {
  return gcl::allReduceCrossReplica(graph, data, op, prog, debugContext, options);
}

void replicatedAllReduceWithOutput(Graph& graph, const Tensor& data, Tensor& output,
                                   CollectiveOperator op, Sequence& prog,
                                   const DebugContext& debugContext, const OptionFlags& options) {
  gcl::allReduceToDestinationCrossReplica(graph, data, output, op, prog, gcl::CommGroup(),
                                          debugContext, options);
}

void replicatedAllReduceInPlace(Graph& graph, Tensor& data, CollectiveOperator op, Sequence& prog,
                                const DebugContext& debugContext, const OptionFlags& options) {
  gcl::allReduceInPlaceCrossReplica(graph, data, op, prog, debugContext, options);
}

Tensor replicatedReduceScatter(Graph& graph, const Tensor& toReduce, CollectiveOperator op,
                               Sequence& prog, const DebugContext& debugContext,
                               const OptionFlags& options) {
  if (toReduce.rank() != 1)
    throw poputil::poplibs_error("[popops::replicatedReduceScatter] needs rank 1; got " +
                                 toReduce.shapeToString() + ". Flatten the tensor.");
  const auto parts = byIpu(graph, toReduce);
  if (parts.size() < 2)
    return gcl::reduceScatterCrossReplica(graph, toReduce, op, prog, debugContext, options);
  std::vector<Tensor> sources;
  for (const auto& [ipu, part] : parts) sources.push_back(part);
  const auto scattered = gcl::reduceScatterCrossReplica(graph, sources, op, prog, gcl::CommGroup(),
                                                        debugContext, options);
  const unsigned tiles = graph.getTarget().getTilesPerIPU();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const unsigned first = parts[i].first * tiles;
    Graph ipu = graph.createVirtualGraph(first, first + tiles);
    poputil::mapTensorLinearly(ipu, scattered[i]);
  }
  return poplar::concat(scattered);
}

Tensor replicatedAllGather(Graph& graph, const Tensor& toGather, Sequence& prog,
                           const DebugContext& debugContext, const OptionFlags& options) {
  return gcl::allGatherCrossReplica(graph, toGather, prog, debugContext, options);
}

Tensor allToAllPersonalizedExchange(Graph& graph, const Tensor& input, Sequence& prog,
                                    const DebugContext& debugContext, const OptionFlags& options) {
  return gcl::allToAllCrossReplica(graph, input, prog, debugContext, options);
}

}  // namespace popops

namespace gcl {

Chunks reduceScatterWithinReplica(poplar::Graph& graph, const poplar::Tensor& toReduce,
                                  CollectiveOperator op, poplar::program::Sequence& prog,
                                  const poplar::DebugContext& debugContext,
                                  const poplar::OptionFlags& options) {
  return popops::reduceScatter(graph, toReduce, op, prog, debugContext, options);
}

poplar::Tensor allGatherWithinReplica(poplar::Graph& graph, const Chunks& toGather,
                                      poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext,
                                      const poplar::OptionFlags& options) {
  return popops::allGather(graph, toGather, prog, debugContext, options);
}

poplar::Tensor allReduceWithinReplica(poplar::Graph& graph, const poplar::Tensor& toReduce,
                                      CollectiveOperator op, poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext,
                                      const poplar::OptionFlags& options) {
  return popops::allReduce(graph, toReduce, op, prog, debugContext, options);
}

poplar::Tensor concatChunks(Chunks chunks) {
  std::sort(chunks.chunks.begin(), chunks.chunks.end(), [](const Chunk& a, const Chunk& b) {
    return a.index != b.index ? a.index < b.index : a.offset < b.offset;
  });
  std::vector<poplar::Tensor> parts;
  for (const Chunk& chunk : chunks.chunks) parts.push_back(chunk.tensor.flatten());
  return poplar::concat(parts);
}

}  // namespace gcl
