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

void checkPairs(const Tensors& datas, const Tensors& destinations) {
  if (datas.size() == destinations.size()) return;
  throw poplar::poplar_error("[gcl] needs one destination for each of the " +
                             std::to_string(datas.size()) + " tensors; got " +
                             std::to_string(destinations.size()) + ". Pass as many.");
}

void copyTo(const Tensors& results, const Tensors& destinations, Sequence& prog,
            const DebugContext& debug) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    prog.add(poplar::program::Copy(results[i].flatten(), destinations[i].flatten(), false, debug));
  }
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

void allReduceToDestinationCrossReplica(Graph& graph, const Tensors& datas,
                                        const Tensors& destinations, CollectiveOperator op,
                                        Sequence& prog, const CommGroup& group,
                                        const DebugContext& debug, const OptionFlags& options) {
  checkPairs(datas, destinations);
  for (const Tensor& data : datas) checkLogical(op, data);
  groups::allReduceToDestination(graph, datas, destinations, op, membersOf(graph, group), prog,
                                 debug, options);
}

void allReduceToDestinationCrossReplica(Graph& graph, const Tensors& datas,
                                        const Tensors& destinations, CollectiveOperator op,
                                        Sequence& prog, const DebugContext& debug,
                                        const OptionFlags& options) {
  allReduceToDestinationCrossReplica(graph, datas, destinations, op, prog, CommGroup(), debug,
                                     options);
}

void allReduceToDestinationCrossReplica(Graph& graph, const Tensor& data, const Tensor& destination,
                                        CollectiveOperator op, Sequence& prog,
                                        const CommGroup& group, const DebugContext& debug,
                                        const OptionFlags& options) {
  allReduceToDestinationCrossReplica(graph, Tensors{data}, Tensors{destination}, op, prog, group,
                                     debug, options);
}

void allReduceToDestinationCrossReplica(Graph& graph, const Tensor& data, const Tensor& destination,
                                        CollectiveOperator op, Sequence& prog,
                                        const DebugContext& debug, const OptionFlags& options) {
  allReduceToDestinationCrossReplica(graph, data, destination, op, prog, CommGroup(), debug,
                                     options);
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

void allReduceInPlaceCrossReplica(Graph& graph, const Tensors& datas, CollectiveOperator op,
                                  Sequence& prog, const DebugContext& debug,
                                  const OptionFlags& options) {
  allReduceInPlaceCrossReplica(graph, datas, op, prog, CommGroup(), debug, options);
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

Tensors reduceScatterCrossReplica(Graph& graph, const Tensors& datas, CollectiveOperator op,
                                  Sequence& prog, const DebugContext& debug,
                                  const OptionFlags& options) {
  return reduceScatterCrossReplica(graph, datas, op, prog, CommGroup(), debug, options);
}

void reduceScatterToDestinationCrossReplica(Graph& graph, const Tensors& datas,
                                            const Tensors& destinations, CollectiveOperator op,
                                            Sequence& prog, const CommGroup& group,
                                            const DebugContext& debug, const OptionFlags& options) {
  checkPairs(datas, destinations);
  copyTo(reduceScatterCrossReplica(graph, datas, op, prog, group, debug, options), destinations,
         prog, debug);
}

void reduceScatterToDestinationCrossReplica(Graph& graph, const Tensors& datas,
                                            const Tensors& destinations, CollectiveOperator op,
                                            Sequence& prog, const DebugContext& debug,
                                            const OptionFlags& options) {
  reduceScatterToDestinationCrossReplica(graph, datas, destinations, op, prog, CommGroup(), debug,
                                         options);
}

void reduceScatterToDestinationCrossReplica(Graph& graph, const Tensor& data,
                                            const Tensor& destination, CollectiveOperator op,
                                            Sequence& prog, const CommGroup& group,
                                            const DebugContext& debug, const OptionFlags& options) {
  reduceScatterToDestinationCrossReplica(graph, Tensors{data}, Tensors{destination}, op, prog,
                                         group, debug, options);
}

void reduceScatterToDestinationCrossReplica(Graph& graph, const Tensor& data,
                                            const Tensor& destination, CollectiveOperator op,
                                            Sequence& prog, const DebugContext& debug,
                                            const OptionFlags& options) {
  reduceScatterToDestinationCrossReplica(graph, data, destination, op, prog, CommGroup(), debug,
                                         options);
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

Tensors allGatherCrossReplica(Graph& graph, const Tensors& datas, Sequence& prog,
                              const CommGroup& group, const DebugContext& debug,
                              const OptionFlags& options) {
  Tensors gathered;
  for (const Tensor& data : datas)
    gathered.push_back(allGatherCrossReplica(graph, data, prog, group, debug, options));
  return gathered;
}

Tensors allGatherCrossReplica(Graph& graph, const Tensors& datas, Sequence& prog,
                              const DebugContext& debug, const OptionFlags& options) {
  return allGatherCrossReplica(graph, datas, prog, CommGroup(), debug, options);
}

void allGatherToDestinationCrossReplica(Graph& graph, const Tensors& datas,
                                        const Tensors& destinations, Sequence& prog,
                                        const CommGroup& group, const DebugContext& debug,
                                        const OptionFlags& options) {
  checkPairs(datas, destinations);
  copyTo(allGatherCrossReplica(graph, datas, prog, group, debug, options), destinations, prog,
         debug);
}

void allGatherToDestinationCrossReplica(Graph& graph, const Tensors& datas,
                                        const Tensors& destinations, Sequence& prog,
                                        const DebugContext& debug, const OptionFlags& options) {
  allGatherToDestinationCrossReplica(graph, datas, destinations, prog, CommGroup(), debug, options);
}

void allGatherToDestinationCrossReplica(Graph& graph, const Tensor& data, const Tensor& destination,
                                        Sequence& prog, const CommGroup& group,
                                        const DebugContext& debug, const OptionFlags& options) {
  allGatherToDestinationCrossReplica(graph, Tensors{data}, Tensors{destination}, prog, group, debug,
                                     options);
}

void allGatherToDestinationCrossReplica(Graph& graph, const Tensor& data, const Tensor& destination,
                                        Sequence& prog, const DebugContext& debug,
                                        const OptionFlags& options) {
  allGatherToDestinationCrossReplica(graph, data, destination, prog, CommGroup(), debug, options);
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
