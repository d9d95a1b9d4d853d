#include "gcl/Collectives.hpp"

#include <sstream>

#include "gcl/internal/ReplicaGroups.hpp"
#include "poplar/exceptions.hpp"

namespace gcl {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

std::vector<std::vector<unsigned>> membersOf(const Graph& graph, const CommGroup& group) {
  return group.members(graph.getReplicationFactor());
}

void checkLogical(CollectiveOperator op, const Tensor& data) {
  const bool logical =
      op == CollectiveOperator::LOGICAL_AND || op == CollectiveOperator::LOGICAL_OR;
  if (!logical || data.elementType() == poplar::BOOL) return;
  std::ostringstream got;
  got << op << " of " << data.elementType();
  throw poplar::poplar_error("[gcl] needs BOOL data for a logical operator; got " + got.str() +
                             ". Cast the data, or use another operator.");
}

}  // namespace

Tensors allReduceCrossReplica(Graph& graph, const Tensors& datas, CollectiveOperator op,
                              Sequence& prog, const CommGroup& group, const DebugContext& debug,
                              const OptionFlags& options) {
  for (const Tensor& data : datas) checkLogical(op, data);
  return groups::allReduce(graph, datas, op, membersOf(graph, group), prog, debug, options);
}

Tensors allReduceCrossReplica(Graph& graph, const Tensors& datas, CollectiveOperator op,
                              Sequence& prog, const DebugContext& debug,
                              const OptionFlags& options) {
  return allReduceCrossReplica(graph, datas, op, prog, CommGroup(), debug, options);
}

Tensor allReduceCrossReplica(Graph& graph, const Tensor& data, CollectiveOperator op,
                             Sequence& prog, const CommGroup& group, const DebugContext& debug,
                             const OptionFlags& options) {
  return allReduceCrossReplica(graph, Tensors{data}, op, prog, group, debug, options)[0];
}

Tensor allReduceCrossReplica(Graph& graph, const Tensor& data, CollectiveOperator op,
                             Sequence& prog, const DebugContext& debug,
                             const OptionFlags& options) {
  return allReduceCrossReplica(graph, data, op, prog, CommGroup(), debug, options);
}

void allReduceToDestinationCrossReplica(Graph& graph, const Tensor& data, const Tensor& destination,
                                        CollectiveOperator op, Sequence& prog,
                                        const CommGroup& group, const DebugContext& debug,
                                        const OptionFlags& options) {
  checkLogical(op, data);
  groups::allReduceToDestination(graph, {data}, {destination}, op, membersOf(graph, group), prog,
                                 debug, options);
}

void allReduceInPlaceCrossReplica(Graph& graph, const Tensors& datas, CollectiveOperator op,
                                  Sequence& prog, const CommGroup& group, const DebugContext& debug,
                                  const OptionFlags& options) {
  for (const Tensor& data : datas) checkLogical(op, data);
  groups::allReduceToDestination(graph, datas, datas, op, membersOf(graph, group), prog, debug,
                                 options);
}

void allReduceInPlaceCrossReplica(Graph& graph, const Tensor& data, CollectiveOperator op,
                                  Sequence& prog, const CommGroup& group, const DebugContext& debug,
                                  const OptionFlags& options) {
  allReduceInPlaceCrossReplica(graph, Tensors{data}, op, prog, group, debug, options);
}

void allReduceInPlaceCrossReplica(Graph& graph, const Tensor& data, CollectiveOperator op,
                                  Sequence& prog, const DebugContext& debug,
                                  const OptionFlags& options) {
  allReduceInPlaceCrossReplica(graph, data, op, prog, CommGroup(), debug, options);
}

Tensors reduceScatterCrossReplica(Graph& graph, const Tensors& datas, CollectiveOperator op,
                                  Sequence& prog, const CommGroup& group, const DebugContext& debug,
                                  const OptionFlags& options) {
  for (const Tensor& data : datas) checkLogical(op, data);
  return groups::reduceScatter(graph, datas, op, membersOf(graph, group), prog, debug, options);
}

Tensor reduceScatterCrossReplica(Graph& graph, const Tensor& data, CollectiveOperator op,
                                 Sequence& prog, const CommGroup& group, const DebugContext& debug,
                                 const OptionFlags& options) {
  return reduceScatterCrossReplica(graph, Tensors{data}, op, prog, group, debug, options)[0];
}

Tensor reduceScatterCrossReplica(Graph& graph, const Tensor& data, CollectiveOperator op,
                                 Sequence& prog, const DebugContext& debug,
                                 const OptionFlags& options) {
  return reduceScatterCrossReplica(graph, data, op, prog, CommGroup(), debug, options);
}

Tensor allGatherCrossReplica(Graph& graph, const Tensor& data, Sequence& prog,
                             const CommGroup& group, const DebugContext& debug,
                             const OptionFlags& options) {
  return groups::allGather(graph, data, membersOf(graph, group), prog, debug, options);
}

Tensor allGatherCrossReplica(Graph& graph, const Tensor& data, Sequence& prog,
                             const DebugContext& debug, const OptionFlags& options) {
  return allGatherCrossReplica(graph, data, prog, CommGroup(), debug, options);
}

Tensor allToAllCrossReplica(Graph& graph, const Tensor& data, Sequence& prog,
                            const CommGroup& group, const DebugContext& debug,
                            const OptionFlags& options) {
  return groups::allToAll(graph, data, membersOf(graph, group), prog, debug, options);
}

Tensor allToAllCrossReplica(Graph& graph, const Tensor& data, Sequence& prog,
                            const DebugContext& debug, const OptionFlags& options) {
  return allToAllCrossReplica(graph, data, prog, CommGroup(), debug, options);
}

Tensor broadcastCrossReplica(Graph& graph, const Tensor& data, Sequence& prog,
                             const CommGroup& group, unsigned rootReplica,
                             const DebugContext& debug, const OptionFlags& options) {
  return groups::broadcast(graph, data, rootReplica, membersOf(graph, group), prog, debug, options);
}

}  // namespace gcl
