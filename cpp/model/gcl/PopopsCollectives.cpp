// Implements popops/Collectives.hpp with gcl, a layer above, and gcl within a replica with popops.
#include <algorithm>
#include <vector>

#include "gcl/Collectives.hpp"
#include "popops/Collectives.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

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
  return gcl::reduceScatterCrossReplica(graph, toReduce, op, prog, debugContext, options);
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
