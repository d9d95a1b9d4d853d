#pragma once
#include "popops/CollectiveTypes.hpp"
#include "popops/TensorCollectives.hpp"

/// Collectives over replicas with the API that popops had before gcl; each calls gcl's function
/// over all replicas. `parentGraph` has no effect.
namespace popops {

#define IPUJAX_COLLECTIVE_TAIL     \
  poplar::program::Sequence &prog, \
      const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}

/// Each replica gets the combination of all replicas' data.
poplar::Tensor replicatedAllReduce(poplar::Graph& graph, const poplar::Tensor& data,
                                   CollectiveOperator op, IPUJAX_COLLECTIVE_TAIL);
void replicatedAllReduceWithOutput(poplar::Graph& graph, const poplar::Tensor& data,
                                   poplar::Tensor& output, CollectiveOperator op,
                                   IPUJAX_COLLECTIVE_TAIL);
void replicatedAllReduceInPlace(poplar::Graph& graph, poplar::Tensor& data, CollectiveOperator op,
                                IPUJAX_COLLECTIVE_TAIL);
/// Combines tensors of rank 1, padded with zeros; replica j gets part j of the result. If a
/// replica has several IPUs, it gets part j of the elements on each, in IPU order. Throws
/// poplibs_error for another rank.
poplar::Tensor replicatedReduceScatter(poplar::Graph& graph, const poplar::Tensor& toReduce,
                                       CollectiveOperator op, IPUJAX_COLLECTIVE_TAIL);
/// [replicas, shape of toGather...].
poplar::Tensor replicatedAllGather(poplar::Graph& graph, const poplar::Tensor& toGather,
                                   IPUJAX_COLLECTIVE_TAIL);
/// Element j of replica i's input becomes element i of replica j's result.
poplar::Tensor allToAllPersonalizedExchange(poplar::Graph& graph, const poplar::Tensor& input,
                                            IPUJAX_COLLECTIVE_TAIL);

inline poplar::Tensor replicatedAllReduce(poplar::Graph& graph, poplar::Graph& /*parentGraph*/,
                                          const poplar::Tensor& data, CollectiveOperator op,
                                          IPUJAX_COLLECTIVE_TAIL) {
  return replicatedAllReduce(graph, data, op, prog, debugContext, options);
}

// Overloads that take a reduction's operation.
inline Chunks reduceScatter(poplar::Graph& graph, const poplar::Tensor& toReduce, Operation op,
                            IPUJAX_COLLECTIVE_TAIL) {
  return reduceScatter(graph, toReduce, operationToCollectiveOperator(op), prog, debugContext,
                       options);
}
inline poplar::Tensor allReduce(poplar::Graph& graph, const poplar::Tensor& toReduce, Operation op,
                                IPUJAX_COLLECTIVE_TAIL) {
  return allReduce(graph, toReduce, operationToCollectiveOperator(op), prog, debugContext, options);
}
inline poplar::Tensor replicatedAllReduce(poplar::Graph& graph, const poplar::Tensor& data,
                                          Operation op, IPUJAX_COLLECTIVE_TAIL) {
  return replicatedAllReduce(graph, data, operationToCollectiveOperator(op), prog, debugContext,
                             options);
}
inline poplar::Tensor replicatedAllReduce(poplar::Graph& graph, poplar::Graph& /*parentGraph*/,
                                          const poplar::Tensor& data, Operation op,
                                          IPUJAX_COLLECTIVE_TAIL) {
  return replicatedAllReduce(graph, data, op, prog, debugContext, options);
}
inline void replicatedAllReduceWithOutput(poplar::Graph& graph, const poplar::Tensor& data,
                                          poplar::Tensor& output, Operation op,
                                          IPUJAX_COLLECTIVE_TAIL) {
  replicatedAllReduceWithOutput(graph, data, output, operationToCollectiveOperator(op), prog,
                                debugContext, options);
}
inline void replicatedAllReduceInPlace(poplar::Graph& graph, poplar::Tensor& data, Operation op,
                                       IPUJAX_COLLECTIVE_TAIL) {
  replicatedAllReduceInPlace(graph, data, operationToCollectiveOperator(op), prog, debugContext,
                             options);
}
inline poplar::Tensor replicatedReduceScatter(poplar::Graph& graph, const poplar::Tensor& toReduce,
                                              Operation op, IPUJAX_COLLECTIVE_TAIL) {
  return replicatedReduceScatter(graph, toReduce, operationToCollectiveOperator(op), prog,
                                 debugContext, options);
}
#undef IPUJAX_COLLECTIVE_TAIL

}  // namespace popops
