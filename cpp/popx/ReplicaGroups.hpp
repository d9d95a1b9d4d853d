#pragma once
#include <utility>
#include <vector>

#include "gcl/Collectives.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"

/// gcl's collectives over groups that gcl::CommGroup cannot express: any division of the replicas.
/// On hardware they are gcl's own if a CommGroup expresses the groups; else copies between replicas
/// along permutations, after which each replica selects its part by its number.
namespace popx {

/// [group][member]: replica numbers, in the order in which members' arrays are combined or laid
/// out.
using ReplicaGroups = std::vector<std::vector<unsigned>>;

/// The combination of each group's arrays, on all its members. Groups may differ in size but must
/// name every replica. LOGICAL_AND and LOGICAL_OR of integers are bitwise. Sums of half are made in
/// float and rounded once.
std::vector<poplar::Tensor> allReduce(poplar::Graph& graph,
                                      const std::vector<poplar::Tensor>& datas,
                                      gcl::CollectiveOperator op, const ReplicaGroups& groups,
                                      poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext = {},
                                      const poplar::OptionFlags& options = {});

/// Member j of a group of p gets elements [j * m, (j + 1) * m) of the combination of the flattened
/// data, m = ceil(n / p); elements past the end are zero. Results have rank 1.
std::vector<poplar::Tensor> reduceScatter(poplar::Graph& graph,
                                          const std::vector<poplar::Tensor>& datas,
                                          gcl::CollectiveOperator op, const ReplicaGroups& groups,
                                          poplar::program::Sequence& prog,
                                          const poplar::DebugContext& debugContext = {},
                                          const poplar::OptionFlags& options = {});

/// `destination`: [member, data's dimensions...].
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

/// Sends along (source, target) pairs of replicas; a target receives at most once, and replicas
/// that receive nothing get zeros.
poplar::Tensor collectivePermute(poplar::Graph& graph, const poplar::Tensor& data,
                                 const std::vector<std::pair<unsigned, unsigned>>& pairs,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});

}  // namespace popx
