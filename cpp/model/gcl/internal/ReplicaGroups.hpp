#pragma once
#include <utility>
#include <vector>

#include "gcl/CollectiveOperator.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

/// Collectives over any groups of replicas, also those that gcl::CommGroup cannot express. gcl's
/// functions call these with the groups of a CommGroup.
namespace gcl::groups {

/// [group][member]: replica numbers, in the order in which members' arrays are combined or laid
/// out.
using ReplicaGroups = std::vector<std::vector<unsigned>>;

/// Sets each destination to the reduction of its group's `datas` at the same index. Groups may
/// differ in size but must name every replica. LOGICAL_AND and LOGICAL_OR of integers are bitwise.
/// Sums of half are computed in float and rounded once. A destination may be its data.
void allReduceToDestination(poplar::Graph& graph, const std::vector<poplar::Tensor>& datas,
                            const std::vector<poplar::Tensor>& destinations,
                            gcl::CollectiveOperator op, const ReplicaGroups& groups,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});
std::vector<poplar::Tensor> allReduce(poplar::Graph& graph,
                                      const std::vector<poplar::Tensor>& datas,
                                      gcl::CollectiveOperator op, const ReplicaGroups& groups,
                                      poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext = {},
                                      const poplar::OptionFlags& options = {});

/// Member j of a group of p receives elements [j * m, (j + 1) * m) of the reduction of the
/// flattened data, m = ceil(n / p), with zeros past the end. Results have rank 1.
std::vector<poplar::Tensor> reduceScatter(poplar::Graph& graph,
                                          const std::vector<poplar::Tensor>& datas,
                                          gcl::CollectiveOperator op, const ReplicaGroups& groups,
                                          poplar::program::Sequence& prog,
                                          const poplar::DebugContext& debugContext = {},
                                          const poplar::OptionFlags& options = {});

/// Concatenates the members' data: [member, data's dimensions...].
poplar::Tensor allGather(poplar::Graph& graph, const poplar::Tensor& data,
                         const ReplicaGroups& groups, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});
void allGatherToDestination(poplar::Graph& graph, const poplar::Tensor& data,
                            const poplar::Tensor& destination, const ReplicaGroups& groups,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            const poplar::OptionFlags& options = {});

/// Slice i of member j's result is slice j of member i's data; the first dimension of both is the
/// size of the groups.
poplar::Tensor allToAll(poplar::Graph& graph, const poplar::Tensor& data,
                        const ReplicaGroups& groups, poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext = {},
                        const poplar::OptionFlags& options = {});
void allToAllToDestination(poplar::Graph& graph, const poplar::Tensor& data,
                           const poplar::Tensor& destination, const ReplicaGroups& groups,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {});

/// All members get the data of member `root` of their group; replicas in no group get zeros.
poplar::Tensor broadcast(poplar::Graph& graph, const poplar::Tensor& data, unsigned root,
                         const ReplicaGroups& groups, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {},
                         const poplar::OptionFlags& options = {});

/// Sends along (source, target) pairs of replicas; each target receives at most once, and replicas
/// that receive nothing get zeros.
poplar::Tensor collectivePermute(poplar::Graph& graph, const poplar::Tensor& data,
                                 const std::vector<std::pair<unsigned, unsigned>>& pairs,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});
void collectivePermuteToDestination(poplar::Graph& graph, const poplar::Tensor& data,
                                    const poplar::Tensor& destination,
                                    const std::vector<std::pair<unsigned, unsigned>>& pairs,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext = {});

}  // namespace gcl::groups
