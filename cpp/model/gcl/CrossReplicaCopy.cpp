#include "engine/graph/GraphImpl.hpp"
#include "gcl/internal/ReplicaGroups.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/exceptions.hpp"

namespace poplar::program {

CrossReplicaCopy::CrossReplicaCopy(Tensor src, Tensor dst,
                                   const std::map<unsigned, unsigned>& replicaMap,
                                   const DebugContext& debugContext)
    : Program(Sequence(debugContext).node()) {
  Graph graph = Graph::of(*dst.graphImpl());
  const std::vector<std::pair<unsigned, unsigned>> pairs(replicaMap.begin(), replicaMap.end());
  if (pairs.size() != graph.getReplicationFactor()) {
    throw poplar_error("[CrossReplicaCopy] needs a map that names each of the " +
                       std::to_string(graph.getReplicationFactor()) + " replicas once; got " +
                       std::to_string(pairs.size()) +
                       " entries. Add the replicas that are missing.");
  }
  Sequence sequence(debugContext);
  gcl::groups::collectivePermuteToDestination(graph, src, dst, pairs, sequence, debugContext);
  node_ = sequence.node();
}

}  // namespace poplar::program
