#include "gcl/Collectives.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "gcl/internal/ReplicaGroups.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"

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

/// Elements of a tensor that lie on one IPU of a replica, in their order.
struct OnIpu {
  unsigned ipu = 0;
  Tensor elements;
};

/// The parts of a tensor by IPU; the whole tensor if it is on one.
std::vector<OnIpu> byIpu(const Graph& graph, const Tensor& data) {
  const auto mapping = graph.getTileMapping(data, false);
  const unsigned tiles = graph.getTarget().getTilesPerIPU();
  std::map<unsigned, std::vector<poplar::Interval>> on;
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const poplar::Interval& interval : mapping[tile]) on[tile / tiles].push_back(interval);
  if (on.size() < 2) return {{0, data}};
  std::vector<OnIpu> parts;
  for (auto& [ipu, intervals] : on) {
    std::sort(intervals.begin(), intervals.end(),
              [](const auto& a, const auto& b) { return a.begin() < b.begin(); });
    parts.push_back({ipu, poplar::concat(data.flatten().slices(intervals))});
  }
  return parts;
}

/// Spreads a tensor over the tiles of an IPU.
void mapTo(Graph& graph, unsigned ipu, const Tensor& t) {
  const unsigned tiles = graph.getTarget().getTilesPerIPU();
  Graph its_tiles = graph.createVirtualGraph(ipu * tiles, (ipu + 1) * tiles);
  poputil::mapTensorLinearly(its_tiles, t);
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
  std::vector<std::vector<OnIpu>> parts;
  Tensors sources;
  for (const Tensor& data : datas) {
    checkLogical(op, data);
    parts.push_back(byIpu(graph, data));
    for (const OnIpu& part : parts.back()) sources.push_back(part.elements);
  }
  const Tensors scattered =
      groups::reduceScatter(graph, sources, op, membersOf(graph, group), prog, debug, options);
  Tensors results;
  auto next = scattered.begin();
  for (const auto& of_data : parts) {
    const Tensors own(next, next + static_cast<std::ptrdiff_t>(of_data.size()));
    next += static_cast<std::ptrdiff_t>(of_data.size());
    for (std::size_t i = 0; own.size() > 1 && i < own.size(); ++i)
      mapTo(graph, of_data[i].ipu, own[i]);
    results.push_back(own.size() > 1 ? poplar::concat(own) : own[0]);
  }
  return results;
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
