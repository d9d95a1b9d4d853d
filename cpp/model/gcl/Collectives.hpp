#pragma once
#include <vector>

#include "gcl/CollectiveOperator.hpp"
#include "gcl/CommGroup.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popops/CollectiveTypes.hpp"
#include "popops/TensorCollectives.hpp"

/// Graphcore's Communication Library: collective operations of a graph's replicas. A tensor stands
/// for one array on each replica, and data is combined as a tree over the replicas, so results are
/// bitwise repeatable with any method. Options: "method" ("auto", the rings and "broadcast", see
/// Method), "syncful.maxBroadcastSize"; they only change the cost. Options that choose between
/// GCL's implementations, such as "useSynclessCollectives", have no effect. Cost: the links of
/// Links.hpp, by the methods of the GCL User Guide.
namespace gcl {

/// All members of a group receive the reduction of the members' data.
poplar::Tensor allReduceCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                     CollectiveOperator op, poplar::program::Sequence& prog,
                                     const CommGroup& group,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {});
poplar::Tensor allReduceCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                     CollectiveOperator op, poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {});
/// Several tensors, of any types, in one collective.
std::vector<poplar::Tensor> allReduceCrossReplica(
    poplar::Graph& graph, const std::vector<poplar::Tensor>& datas, CollectiveOperator op,
    poplar::program::Sequence& prog, const CommGroup& group,
    const poplar::DebugContext& debugContext = {}, const poplar::OptionFlags& options = {});
std::vector<poplar::Tensor> allReduceCrossReplica(poplar::Graph& graph,
                                                  const std::vector<poplar::Tensor>& datas,
                                                  CollectiveOperator op,
                                                  poplar::program::Sequence& prog,
                                                  const poplar::DebugContext& debugContext = {},
                                                  const poplar::OptionFlags& options = {});
/// The same, written to `destination`, of the same shape and type.
void allReduceToDestinationCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                        const poplar::Tensor& destination, CollectiveOperator op,
                                        poplar::program::Sequence& prog, const CommGroup& group,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allReduceToDestinationCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                        const poplar::Tensor& destination, CollectiveOperator op,
                                        poplar::program::Sequence& prog,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allReduceToDestinationCrossReplica(poplar::Graph& graph,
                                        const std::vector<poplar::Tensor>& datas,
                                        const std::vector<poplar::Tensor>& destinations,
                                        CollectiveOperator op, poplar::program::Sequence& prog,
                                        const CommGroup& group,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allReduceToDestinationCrossReplica(poplar::Graph& graph,
                                        const std::vector<poplar::Tensor>& datas,
                                        const std::vector<poplar::Tensor>& destinations,
                                        CollectiveOperator op, poplar::program::Sequence& prog,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allReduceInPlaceCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                  CollectiveOperator op, poplar::program::Sequence& prog,
                                  const CommGroup& group,
                                  const poplar::DebugContext& debugContext = {},
                                  const poplar::OptionFlags& options = {});
void allReduceInPlaceCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                  CollectiveOperator op, poplar::program::Sequence& prog,
                                  const poplar::DebugContext& debugContext = {},
                                  const poplar::OptionFlags& options = {});
void allReduceInPlaceCrossReplica(poplar::Graph& graph, const std::vector<poplar::Tensor>& datas,
                                  CollectiveOperator op, poplar::program::Sequence& prog,
                                  const CommGroup& group,
                                  const poplar::DebugContext& debugContext = {},
                                  const poplar::OptionFlags& options = {});
void allReduceInPlaceCrossReplica(poplar::Graph& graph, const std::vector<poplar::Tensor>& datas,
                                  CollectiveOperator op, poplar::program::Sequence& prog,
                                  const poplar::DebugContext& debugContext = {},
                                  const poplar::OptionFlags& options = {});

/// Member j receives part j of the reduction: rank 1, ceil(n / group size) elements, zeros past the
/// end of the data. If the data lies on several IPUs of a replica, the elements on each IPU are
/// reduced separately, and the result concatenates their parts in the order of the IPUs.
poplar::Tensor reduceScatterCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                         CollectiveOperator op, poplar::program::Sequence& prog,
                                         const CommGroup& group,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {});
poplar::Tensor reduceScatterCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                         CollectiveOperator op, poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext = {},
                                         const poplar::OptionFlags& options = {});
std::vector<poplar::Tensor> reduceScatterCrossReplica(
    poplar::Graph& graph, const std::vector<poplar::Tensor>& datas, CollectiveOperator op,
    poplar::program::Sequence& prog, const CommGroup& group,
    const poplar::DebugContext& debugContext = {}, const poplar::OptionFlags& options = {});
std::vector<poplar::Tensor> reduceScatterCrossReplica(poplar::Graph& graph,
                                                      const std::vector<poplar::Tensor>& datas,
                                                      CollectiveOperator op,
                                                      poplar::program::Sequence& prog,
                                                      const poplar::DebugContext& debugContext = {},
                                                      const poplar::OptionFlags& options = {});
/// The same, written to `destination`, which has that many elements.
void reduceScatterToDestinationCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                            const poplar::Tensor& destination,
                                            CollectiveOperator op, poplar::program::Sequence& prog,
                                            const CommGroup& group,
                                            const poplar::DebugContext& debugContext = {},
                                            const poplar::OptionFlags& options = {});
void reduceScatterToDestinationCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                            const poplar::Tensor& destination,
                                            CollectiveOperator op, poplar::program::Sequence& prog,
                                            const poplar::DebugContext& debugContext = {},
                                            const poplar::OptionFlags& options = {});
void reduceScatterToDestinationCrossReplica(poplar::Graph& graph,
                                            const std::vector<poplar::Tensor>& datas,
                                            const std::vector<poplar::Tensor>& destinations,
                                            CollectiveOperator op, poplar::program::Sequence& prog,
                                            const CommGroup& group,
                                            const poplar::DebugContext& debugContext = {},
                                            const poplar::OptionFlags& options = {});
void reduceScatterToDestinationCrossReplica(poplar::Graph& graph,
                                            const std::vector<poplar::Tensor>& datas,
                                            const std::vector<poplar::Tensor>& destinations,
                                            CollectiveOperator op, poplar::program::Sequence& prog,
                                            const poplar::DebugContext& debugContext = {},
                                            const poplar::OptionFlags& options = {});

/// Concatenates the members' data: [group size, data's dimensions...].
poplar::Tensor allGatherCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                     poplar::program::Sequence& prog, const CommGroup& group,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {});
poplar::Tensor allGatherCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                     poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {});
std::vector<poplar::Tensor> allGatherCrossReplica(poplar::Graph& graph,
                                                  const std::vector<poplar::Tensor>& datas,
                                                  poplar::program::Sequence& prog,
                                                  const CommGroup& group,
                                                  const poplar::DebugContext& debugContext = {},
                                                  const poplar::OptionFlags& options = {});
std::vector<poplar::Tensor> allGatherCrossReplica(poplar::Graph& graph,
                                                  const std::vector<poplar::Tensor>& datas,
                                                  poplar::program::Sequence& prog,
                                                  const poplar::DebugContext& debugContext = {},
                                                  const poplar::OptionFlags& options = {});
/// The same, written to `destination`, which has that many elements in any shape.
void allGatherToDestinationCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                        const poplar::Tensor& destination,
                                        poplar::program::Sequence& prog, const CommGroup& group,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allGatherToDestinationCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                        const poplar::Tensor& destination,
                                        poplar::program::Sequence& prog,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allGatherToDestinationCrossReplica(poplar::Graph& graph,
                                        const std::vector<poplar::Tensor>& datas,
                                        const std::vector<poplar::Tensor>& destinations,
                                        poplar::program::Sequence& prog, const CommGroup& group,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});
void allGatherToDestinationCrossReplica(poplar::Graph& graph,
                                        const std::vector<poplar::Tensor>& datas,
                                        const std::vector<poplar::Tensor>& destinations,
                                        poplar::program::Sequence& prog,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {});

/// data[j] of member i becomes result[i] of member j; the first dimension is the group size.
poplar::Tensor allToAllCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                    poplar::program::Sequence& prog, const CommGroup& group,
                                    const poplar::DebugContext& debugContext = {},
                                    const poplar::OptionFlags& options = {});
poplar::Tensor allToAllCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext = {},
                                    const poplar::OptionFlags& options = {});

/// All members receive the data of the group's member `rootReplica`.
poplar::Tensor broadcastCrossReplica(poplar::Graph& graph, const poplar::Tensor& data,
                                     poplar::program::Sequence& prog, const CommGroup& group,
                                     unsigned rootReplica = 0,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {});

/// Collectives between the IPUs of one replica: row i of a tensor lies on IPU i. See
/// popops/TensorCollectives.hpp.
using popops::Chunk;
using popops::Chunks;
Chunks reduceScatterWithinReplica(poplar::Graph& graph, const poplar::Tensor& toReduce,
                                  CollectiveOperator op, poplar::program::Sequence& prog,
                                  const poplar::DebugContext& debugContext = {},
                                  const poplar::OptionFlags& options = {});
poplar::Tensor allGatherWithinReplica(poplar::Graph& graph, const Chunks& toGather,
                                      poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext = {},
                                      const poplar::OptionFlags& options = {});
poplar::Tensor allReduceWithinReplica(poplar::Graph& graph, const poplar::Tensor& toReduce,
                                      CollectiveOperator op, poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext = {},
                                      const poplar::OptionFlags& options = {});
/// Concatenates the chunks by index, then offset; rank 1.
poplar::Tensor concatChunks(Chunks chunks);

}  // namespace gcl

/// SDK 2 names of the collectives of replicas. `Op` is a CollectiveOperator or a popops::Operation.
namespace gcl {

using popops::operationToCollectiveOperator;

namespace sdk2 {
inline CollectiveOperator operatorOf(CollectiveOperator op) { return op; }
inline CollectiveOperator operatorOf(popops::Operation op) {
  return operationToCollectiveOperator(op);
}
}  // namespace sdk2

#define IPUJAX_GCL_TAIL \
  const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}

template <class Op>
poplar::Tensor allReduce(poplar::Graph& graph, const poplar::Tensor& data, Op op,
                         poplar::program::Sequence& prog, const CommGroup& group, IPUJAX_GCL_TAIL) {
  return allReduceCrossReplica(graph, data, sdk2::operatorOf(op), prog, group, debugContext,
                               options);
}
template <class Op>
poplar::Tensor allReduce(poplar::Graph& graph, const poplar::Tensor& data, Op op,
                         poplar::program::Sequence& prog, IPUJAX_GCL_TAIL) {
  return allReduce(graph, data, op, prog, CommGroup(), debugContext, options);
}
template <class Op>
void allReduceToDestination(poplar::Graph& graph, const poplar::Tensor& data,
                            const poplar::Tensor& destination, Op op,
                            poplar::program::Sequence& prog, const CommGroup& group,
                            IPUJAX_GCL_TAIL) {
  allReduceToDestinationCrossReplica(graph, data, destination, sdk2::operatorOf(op), prog, group,
                                     debugContext, options);
}
template <class Op>
void allReduceToDestination(poplar::Graph& graph, const poplar::Tensor& data,
                            const poplar::Tensor& destination, Op op,
                            poplar::program::Sequence& prog, IPUJAX_GCL_TAIL) {
  allReduceToDestination(graph, data, destination, op, prog, CommGroup(), debugContext, options);
}
template <class Op>
void allReduceInPlace(poplar::Graph& graph, const poplar::Tensor& data, Op op,
                      poplar::program::Sequence& prog, const CommGroup& group, IPUJAX_GCL_TAIL) {
  allReduceInPlaceCrossReplica(graph, data, sdk2::operatorOf(op), prog, group, debugContext,
                               options);
}
template <class Op>
void allReduceInPlace(poplar::Graph& graph, const poplar::Tensor& data, Op op,
                      poplar::program::Sequence& prog, IPUJAX_GCL_TAIL) {
  allReduceInPlace(graph, data, op, prog, CommGroup(), debugContext, options);
}
template <class Op>
poplar::Tensor reduceScatter(poplar::Graph& graph, const poplar::Tensor& data, Op op,
                             poplar::program::Sequence& prog, const CommGroup& group,
                             IPUJAX_GCL_TAIL) {
  return reduceScatterCrossReplica(graph, data, sdk2::operatorOf(op), prog, group, debugContext,
                                   options);
}
template <class Op>
poplar::Tensor reduceScatter(poplar::Graph& graph, const poplar::Tensor& data, Op op,
                             poplar::program::Sequence& prog, IPUJAX_GCL_TAIL) {
  return reduceScatter(graph, data, op, prog, CommGroup(), debugContext, options);
}
inline poplar::Tensor allGather(poplar::Graph& graph, const poplar::Tensor& data,
                                poplar::program::Sequence& prog, const CommGroup& group,
                                IPUJAX_GCL_TAIL) {
  return allGatherCrossReplica(graph, data, prog, group, debugContext, options);
}
inline poplar::Tensor allGather(poplar::Graph& graph, const poplar::Tensor& data,
                                poplar::program::Sequence& prog, IPUJAX_GCL_TAIL) {
  return allGather(graph, data, prog, CommGroup(), debugContext, options);
}
inline poplar::Tensor allToAll(poplar::Graph& graph, const poplar::Tensor& data,
                               poplar::program::Sequence& prog, const CommGroup& group,
                               IPUJAX_GCL_TAIL) {
  return allToAllCrossReplica(graph, data, prog, group, debugContext, options);
}
inline poplar::Tensor allToAll(poplar::Graph& graph, const poplar::Tensor& data,
                               poplar::program::Sequence& prog, IPUJAX_GCL_TAIL) {
  return allToAll(graph, data, prog, CommGroup(), debugContext, options);
}

#undef IPUJAX_GCL_TAIL

}  // namespace gcl
