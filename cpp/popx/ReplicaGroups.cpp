#include "popx/ReplicaGroups.hpp"

#include "popx/Native.hpp"

namespace popx {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

std::vector<Tensor> allReduce(Graph& graph, const std::vector<Tensor>& datas,
                              gcl::CollectiveOperator op, const ReplicaGroups& groups,
                              Sequence& prog, const DebugContext& debugContext,
                              const OptionFlags& options) {
  return native::groups::allReduce(graph, datas, op, groups, prog, debugContext, options);
}

std::vector<Tensor> reduceScatter(Graph& graph, const std::vector<Tensor>& datas,
                                  gcl::CollectiveOperator op, const ReplicaGroups& groups,
                                  Sequence& prog, const DebugContext& debugContext,
                                  const OptionFlags& options) {
  return native::groups::reduceScatter(graph, datas, op, groups, prog, debugContext, options);
}

void allGatherToDestination(Graph& graph, const Tensor& data, const Tensor& destination,
                            const ReplicaGroups& groups, Sequence& prog,
                            const DebugContext& debugContext, const OptionFlags& options) {
  native::groups::allGatherToDestination(graph, data, destination, groups, prog, debugContext,
                                         options);
}

Tensor allToAll(Graph& graph, const Tensor& data, const ReplicaGroups& groups, Sequence& prog,
                const DebugContext& debugContext, const OptionFlags& options) {
  return native::groups::allToAll(graph, data, groups, prog, debugContext, options);
}

void allToAllToDestination(Graph& graph, const Tensor& data, const Tensor& destination,
                           const ReplicaGroups& groups, Sequence& prog,
                           const DebugContext& debugContext, const OptionFlags& options) {
  native::groups::allToAllToDestination(graph, data, destination, groups, prog, debugContext,
                                        options);
}

Tensor broadcast(Graph& graph, const Tensor& data, unsigned root, const ReplicaGroups& groups,
                 Sequence& prog, const DebugContext& debugContext, const OptionFlags& options) {
  return native::groups::broadcast(graph, data, root, groups, prog, debugContext, options);
}

Tensor collectivePermute(Graph& graph, const Tensor& data,
                         const std::vector<std::pair<unsigned, unsigned>>& pairs, Sequence& prog,
                         const DebugContext& debugContext) {
  return native::groups::collectivePermute(graph, data, pairs, prog, debugContext);
}

}  // namespace popx
