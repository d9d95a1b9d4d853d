#pragma once
#include "gcl/Collectives.hpp"
#include "popops/CollectiveTypes.hpp"

/// Names that SDK 2 had for the collectives of replicas; gcl/Collectives.hpp includes them. `Op` is
/// a CollectiveOperator or a popops::Operation.
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
