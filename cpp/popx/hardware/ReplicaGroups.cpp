#include "popx/ReplicaGroups.hpp"

#include <string>

#include "poplar/exceptions.hpp"
#include "popx/hardware/Replicas.hpp"

// Collectives that move arrays; reductions are in ReplicaReductions.cpp.
namespace popx {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

[[noreturn]] void refuse(const std::string& where, const std::string& needs, const std::string& got,
                         const std::string& fix) {
  throw poplar::poplar_error("[" + where + "] needs " + needs + "; got " + got + ". " + fix);
}

void checkSame(const char* where, const Tensor& data, const Tensor& destination,
               const std::vector<std::size_t>& shape) {
  if (destination.elementType() == data.elementType() && destination.shape() == shape &&
      destination.isParallelWriteable())
    return;
  std::string needs = "a destination of " + data.elementType().toString() + " {";
  for (std::size_t i = 0; i < shape.size(); ++i)
    needs += (i > 0 ? "," : "") + std::to_string(shape[i]);
  refuse(where, needs + "} without elements that appear twice",
         destination.elementType().toString() + " " + destination.shapeToString(),
         "Make it so with addVariable.");
}

}  // namespace

void allGatherToDestination(Graph& graph, const Tensor& data, const Tensor& destination,
                            const ReplicaGroups& groups, Sequence& prog,
                            const DebugContext& debugContext, const OptionFlags& options) {
  constexpr const char* kWhere = "popx::allGather";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, true);
  auto shape = data.shape();
  shape.insert(shape.begin(), groups[0].size());
  checkSame(kWhere, data, destination, shape);
  const auto group = commGroupOf(groups, graph.getReplicationFactor());
  Replicas replicas(graph, prog, {debugContext, "allGather"});
  const Tensor all =
      group ? gcl::allGatherCrossReplica(graph, data, prog, *group, debugContext, options)
            : replicas.gathered(data, groups).reshape(shape);
  prog.add(poplar::program::Copy(all, destination, false, debugContext));
}

void allToAllToDestination(Graph& graph, const Tensor& data, const Tensor& destination,
                           const ReplicaGroups& groups, Sequence& prog,
                           const DebugContext& debugContext, const OptionFlags& options) {
  const Tensor got = allToAll(graph, data, groups, prog, debugContext, options);
  checkSame("popx::allToAll", data, destination, data.shape());
  prog.add(poplar::program::Copy(got, destination, false, debugContext));
}

/// For each distance d, each member sends the data that is for the member d places away.
Tensor allToAll(Graph& graph, const Tensor& data, const ReplicaGroups& groups, Sequence& prog,
                const DebugContext& debugContext, const OptionFlags& options) {
  constexpr const char* kWhere = "popx::allToAll";
  const unsigned num_replicas = graph.getReplicationFactor();
  checkGroups(kWhere, groups, num_replicas, true, true);
  const std::size_t p = groups[0].size();
  if (data.rank() == 0 || data.dim(0) != p)
    refuse(kWhere, "a first dimension of the groups' size " + std::to_string(p),
           data.elementType().toString() + " " + data.shapeToString(), "Reshape the data.");
  if (const auto group = commGroupOf(groups, num_replicas))
    return gcl::allToAllCrossReplica(graph, data, prog, *group, debugContext, options);
  Replicas replicas(graph, prog, {debugContext, "allToAll"});
  // For member j, row s leaves for the s-th member before it, or arrives from the s-th after it.
  std::vector<std::vector<unsigned>> to(num_replicas), from(num_replicas);
  for (const auto& group : groups) {
    for (std::size_t j = 0; j < p; ++j) {
      for (std::size_t s = 0; s < p; ++s) {
        to[group[j]].push_back(static_cast<unsigned>((j + p - s) % p));
        from[group[j]].push_back(static_cast<unsigned>((s + p - j) % p));
      }
    }
  }
  const Tensor leaving = replicas.chosen(data, to);
  Tensors rows = {leaving.slice(0, 1)};
  for (std::size_t s = 1; s < p; ++s) {
    std::vector<std::pair<unsigned, unsigned>> pairs;
    for (const auto& group : groups)
      for (std::size_t j = 0; j < p; ++j) pairs.emplace_back(group[j], group[(j + p - s) % p]);
    rows.push_back(replicas.sent(leaving.slice(s, s + 1), pairs));
  }
  return replicas.chosen(poplar::concat(rows, 0), from);
}

/// Each round doubles the number of members that have the data.
Tensor broadcast(Graph& graph, const Tensor& data, unsigned root, const ReplicaGroups& groups,
                 Sequence& prog, const DebugContext& debugContext, const OptionFlags& options) {
  constexpr const char* kWhere = "popx::broadcast";
  const unsigned num_replicas = graph.getReplicationFactor();
  checkGroups(kWhere, groups, num_replicas, false, false);
  std::size_t named = 0;
  for (const auto& group : groups) {
    named += group.size();
    if (root >= group.size())
      refuse(kWhere, "a root below the size of the groups",
             std::to_string(root) + " in a group of " + std::to_string(group.size()),
             "Number the root within its group.");
  }
  const auto group = commGroupOf(groups, num_replicas);
  if (group && named == num_replicas)
    return gcl::broadcastCrossReplica(graph, data, prog, *group, root, debugContext, options);
  Replicas replicas(graph, prog, {debugContext, "broadcast"});
  const auto rowOf = [](const Tensor& t) { return t.expand({0}); };
  Tensor held = data;
  for (std::size_t have = 1; have < largestOf(groups); have *= 2) {
    std::vector<std::pair<unsigned, unsigned>> pairs;
    std::vector<unsigned> takes(num_replicas);
    for (const auto& members : groups) {
      const auto at = [&](std::size_t m) { return members[(root + m) % members.size()]; };
      for (std::size_t m = 0; m < have && have + m < members.size(); ++m) {
        pairs.emplace_back(at(m), at(have + m));
        takes[at(have + m)] = 1;
      }
    }
    const Tensor got = replicas.sent(held, pairs);
    held = replicas.chosen(poplar::concat(rowOf(held), rowOf(got), 0), takes);
  }
  std::vector<unsigned> has(num_replicas);
  for (const auto& members : groups)
    for (const unsigned r : members) has[r] = 1;
  return replicas.chosen(poplar::concat(rowOf(replicas.zerosLike(data)), rowOf(held), 0), has);
}

/// A replica that sends several times does so in several rounds.
Tensor collectivePermute(Graph& graph, const Tensor& data,
                         const std::vector<std::pair<unsigned, unsigned>>& pairs, Sequence& prog,
                         const DebugContext& debugContext) {
  const unsigned num_replicas = graph.getReplicationFactor();
  std::vector<unsigned> round(num_replicas), sends(num_replicas);
  std::vector<std::vector<std::pair<unsigned, unsigned>>> rounds;
  for (const auto& [from, to] : pairs) {
    if (from >= num_replicas || to >= num_replicas || round[to] > 0)
      refuse("popx::collectivePermute",
             "pairs of the " + std::to_string(num_replicas) + " replicas, each target once",
             std::to_string(from) + " -> " + std::to_string(to), "Check the pairs.");
    round[to] = ++sends[from];
    if (rounds.size() < sends[from]) rounds.emplace_back();
    rounds[sends[from] - 1].emplace_back(from, to);
  }
  Replicas replicas(graph, prog, {debugContext, "permute"});
  if (rounds.size() == 1 && pairs.size() == num_replicas) return replicas.sent(data, pairs);
  Tensors rows = {replicas.zerosLike(data).expand({0})};
  for (const auto& sent : rounds) rows.push_back(replicas.sent(data, sent).expand({0}));
  return replicas.chosen(poplar::concat(rows, 0), round);
}

}  // namespace popx
