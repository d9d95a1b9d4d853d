#include "gcl/internal/ReplicaGroups.hpp"

#include <algorithm>
#include <sstream>

#include "engine/graph/Emit.hpp"
#include "engine/kernels/collectives/CollectiveGroups.hpp"
#include "gcl/internal/Cost.hpp"
#include "gcl/internal/Options.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"

namespace gcl::groups {
namespace {

namespace engine = ipujax::engine;
using poplar::Tensor;

[[noreturn]] void refuse(const char* where, const std::string& needs, const std::string& got,
                         const std::string& fix) {
  throw poplar::poplar_error(std::string("[") + where + "] needs " + needs + "; got " + got + ". " +
                             fix);
}

std::string shown(const Tensor& t) { return t.elementType().toString() + " " + t.shapeToString(); }

void checkOperator(const char* where, CollectiveOperator op, poplar::Type type) {
  const bool floating = type == poplar::FLOAT || type == poplar::HALF ||
                        type.element() == engine::ElementType::kDouble;
  const bool logical =
      op == CollectiveOperator::LOGICAL_AND || op == CollectiveOperator::LOGICAL_OR;
  const bool squares = op == CollectiveOperator::SQUARE_ADD && type == poplar::BOOL;
  if ((logical && floating) || (op == CollectiveOperator::MEAN && !floating) || squares) {
    std::ostringstream got;
    got << op << " of " << type;
    refuse(where, "an operator that has a meaning for the type", got.str(),
           "Cast the data, or use another operator.");
  }
}

void checkSame(const char* where, const Tensor& data, const Tensor& destination,
               const std::vector<std::size_t>& shape) {
  if (destination.elementType() == data.elementType() && destination.shape() == shape &&
      destination.isParallelWriteable())
    return;
  std::string needs = "a destination of " + data.elementType().toString() + " {";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    needs += (i > 0 ? "," : "") + std::to_string(shape[i]);
  }
  refuse(where, needs + "} without elements that appear twice", shown(destination),
         "Make it so with addVariable.");
}

std::string shown(const ReplicaGroups& groups) {
  std::string text = "{";
  for (const auto& group : groups) {
    text += text.size() > 1 ? ", {" : "{";
    for (std::size_t i = 0; i < group.size(); ++i) {
      text += (i > 0 ? ", " : "") + std::to_string(group[i]);
    }
    text += "}";
    if (text.size() > 200) return text + " ...";
  }
  return text + "}";
}

/// Checks that the groups name each of `num_replicas` replicas at most once (with `all`, once) and,
/// with `equal`, that all are of one size.
void checkGroups(const char* where, const ReplicaGroups& groups, unsigned num_replicas, bool all,
                 bool equal) {
  std::vector<bool> named(num_replicas);
  bool good = !groups.empty();
  for (const auto& group : groups) {
    good = good && !group.empty() && (!equal || group.size() == groups[0].size());
    for (const unsigned r : group) {
      good = good && r < num_replicas && !named[r];
      if (good) named[r] = true;
    }
  }
  if (all) good = good && std::find(named.begin(), named.end(), false) == named.end();
  if (good) return;
  refuse(where,
         std::string("groups that name ") + (all ? "each" : "none") + " of the " +
             std::to_string(num_replicas) + " replicas " + (all ? "once" : "twice") +
             (equal ? ", all of one size" : ""),
         shown(groups), "Use groups that divide the replicas.");
}

Tensor variable(poplar::Graph& graph, const Tensor& data, const std::vector<std::size_t>& shape,
                const poplar::DebugContext& debug) {
  Tensor t = graph.addVariable(data.elementType(), shape, debug);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// Several tensors cost as much as one with all their bytes, in the widest of their types.
engine::Cost costOf(const poplar::Graph& graph, CollectiveKind kind,
                    const std::vector<Tensor>& wholes, const ReplicaGroups& groups,
                    const poplar::OptionFlags& options) {
  const auto& target = graph.getTarget();
  std::uint64_t bytes = 0;
  poplar::Type type = wholes[0].elementType();
  for (const Tensor& whole : wholes) {
    const std::uint64_t size = target.getTypeSize(whole.elementType());
    bytes += whole.numElements() * size;
    if (size > target.getTypeSize(type)) type = whole.elementType();
  }
  const std::uint64_t size = target.getTypeSize(type);
  const gcl::CollectiveWork work{kind, type, (bytes + size - 1) / size, groups,
                                 graph.getReplicationFactor()};
  return gcl::costOf(target, work, gcl::Options::read(options));
}

void emitReduce(poplar::Graph& graph, const std::vector<Tensor>& datas,
                const std::vector<Tensor>& destinations, CollectiveOperator op, bool scatter,
                const ReplicaGroups& groups, poplar::program::Sequence& prog,
                const poplar::DebugContext& debug, engine::Cost cost) {
  engine::StepSpec spec;
  spec.kernel = "gcl.reduce";
  const auto k = static_cast<std::uint32_t>(datas.size());
  for (const Tensor& data : datas) spec.operands.push_back({data, engine::Access::kRead, true});
  for (std::uint32_t i = 0; i < k; ++i) {
    spec.operands.push_back({destinations[i], engine::Access::kWrite, true});
    if (!scatter) spec.in_place.emplace_back(i, k + i);
  }
  spec.attributes.set("op", static_cast<std::int64_t>(op))
      .set("scatter", static_cast<std::int64_t>(scatter));
  engine::collective::setGroups(spec.attributes, groups);
  spec.cost = cost;
  engine::emit(graph, prog, std::move(spec), debug);
}

void emitMove(poplar::Graph& graph, const char* pattern, const Tensor& data,
              const Tensor& destination, const ReplicaGroups& groups,
              poplar::program::Sequence& prog, const poplar::DebugContext& debug,
              engine::Cost cost) {
  engine::StepSpec spec;
  spec.kernel = "gcl.move";
  spec.operands = {{data, engine::Access::kRead}, {destination, engine::Access::kWrite}};
  spec.attributes.set("pattern", std::string(pattern));
  engine::collective::setGroups(spec.attributes, groups);
  spec.cost = cost;
  engine::emit(graph, prog, std::move(spec), debug);
}

std::vector<std::size_t> gathered(const Tensor& data, const ReplicaGroups& groups) {
  std::vector<std::size_t> shape{groups[0].size()};
  shape.insert(shape.end(), data.shape().begin(), data.shape().end());
  return shape;
}

std::size_t shareOf(const Tensor& data, const ReplicaGroups& groups) {
  const std::size_t p = groups[0].size();
  return (data.numElements() + p - 1) / p;
}

}  // namespace

void allReduceToDestination(poplar::Graph& graph, const std::vector<Tensor>& datas,
                            const std::vector<Tensor>& destinations, CollectiveOperator op,
                            const ReplicaGroups& groups, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext,
                            const poplar::OptionFlags& options) {
  constexpr const char* kWhere = "gcl::allReduce";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, false);
  if (datas.size() != destinations.size()) {
    refuse(kWhere, "a destination for each tensor",
           std::to_string(datas.size()) + " and " + std::to_string(destinations.size()),
           "Pass as many.");
  }
  if (datas.empty()) return;
  const poplar::DebugContext debug{debugContext, "allReduce"};
  for (std::size_t i = 0; i < datas.size(); ++i) {
    checkOperator(kWhere, op, datas[i].elementType());
    checkSame(kWhere, datas[i], destinations[i], datas[i].shape());
  }
  const engine::Cost cost = costOf(graph, CollectiveKind::kAllReduce, datas, groups, options);
  if (op == CollectiveOperator::LOCAL) {
    for (std::size_t i = 0; i < datas.size(); ++i) {
      if (datas[i] != destinations[i])
        prog.add(poplar::program::Copy(datas[i], destinations[i], false, debug));
    }
    return;
  }
  emitReduce(graph, datas, destinations, op, false, groups, prog, debug, cost);
}

std::vector<Tensor> allReduce(poplar::Graph& graph, const std::vector<Tensor>& datas,
                              CollectiveOperator op, const ReplicaGroups& groups,
                              poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext,
                              const poplar::OptionFlags& options) {
  std::vector<Tensor> results;
  for (const Tensor& data : datas) {
    results.push_back(variable(graph, data, data.shape(), {debugContext, "allReduced"}));
  }
  allReduceToDestination(graph, datas, results, op, groups, prog, debugContext, options);
  return results;
}

std::vector<Tensor> reduceScatter(poplar::Graph& graph, const std::vector<Tensor>& datas,
                                  CollectiveOperator op, const ReplicaGroups& groups,
                                  poplar::program::Sequence& prog,
                                  const poplar::DebugContext& debugContext,
                                  const poplar::OptionFlags& options) {
  constexpr const char* kWhere = "gcl::reduceScatter";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, true);
  if (datas.empty()) return {};
  std::vector<Tensor> sources;
  std::vector<Tensor> results;
  for (const Tensor& data : datas) {
    checkOperator(kWhere, op, data.elementType());
    sources.push_back(data.flatten());
    const std::vector<std::size_t> shape{shareOf(data, groups)};
    results.push_back(variable(graph, data, shape, {debugContext, "reduceScattered"}));
  }
  engine::Cost cost = costOf(graph, CollectiveKind::kReduceScatter, datas, groups, options);
  if (op == CollectiveOperator::LOCAL) cost = {};
  emitReduce(graph, sources, results, op, true, groups, prog, {debugContext, "reduceScatter"},
             cost);
  return results;
}

void allGatherToDestination(poplar::Graph& graph, const Tensor& data, const Tensor& destination,
                            const ReplicaGroups& groups, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext,
                            const poplar::OptionFlags& options) {
  constexpr const char* kWhere = "gcl::allGather";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, true);
  checkSame(kWhere, data, destination, gathered(data, groups));
  emitMove(graph, "gather", data, destination, groups, prog, {debugContext, "allGather"},
           costOf(graph, CollectiveKind::kAllGather, {destination}, groups, options));
}

Tensor allGather(poplar::Graph& graph, const Tensor& data, const ReplicaGroups& groups,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                 const poplar::OptionFlags& options) {
  checkGroups("gcl::allGather", groups, graph.getReplicationFactor(), true, true);
  const Tensor result =
      variable(graph, data, gathered(data, groups), {debugContext, "allGathered"});
  allGatherToDestination(graph, data, result, groups, prog, debugContext, options);
  return result;
}

void allToAllToDestination(poplar::Graph& graph, const Tensor& data, const Tensor& destination,
                           const ReplicaGroups& groups, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext,
                           const poplar::OptionFlags& options) {
  constexpr const char* kWhere = "gcl::allToAll";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, true);
  if (data.rank() == 0 || data.dim(0) != groups[0].size()) {
    refuse(kWhere, "a first dimension of the groups' size " + std::to_string(groups[0].size()),
           shown(data), "Reshape the data.");
  }
  checkSame(kWhere, data, destination, data.shape());
  emitMove(graph, "all_to_all", data, destination, groups, prog, {debugContext, "allToAll"},
           costOf(graph, CollectiveKind::kAllToAll, {data}, groups, options));
}

Tensor allToAll(poplar::Graph& graph, const Tensor& data, const ReplicaGroups& groups,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
                const poplar::OptionFlags& options) {
  const Tensor result = variable(graph, data, data.shape(), {debugContext, "exchanged"});
  allToAllToDestination(graph, data, result, groups, prog, debugContext, options);
  return result;
}

Tensor broadcast(poplar::Graph& graph, const Tensor& data, unsigned root,
                 const ReplicaGroups& groups, poplar::program::Sequence& prog,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags& options) {
  constexpr const char* kWhere = "gcl::broadcast";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), false, false);
  gcl::Options::read(options);
  std::vector<std::pair<unsigned, unsigned>> pairs;
  for (const auto& group : groups) {
    if (root >= group.size()) {
      refuse(kWhere, "a root below the size of the groups",
             std::to_string(root) + " in a group of " + std::to_string(group.size()),
             "Number the root within its group.");
    }
    for (const unsigned member : group) pairs.emplace_back(group[root], member);
  }
  return collectivePermute(graph, data, pairs, prog, {debugContext, "broadcast"});
}

void collectivePermuteToDestination(poplar::Graph& graph, const Tensor& data,
                                    const Tensor& destination,
                                    const std::vector<std::pair<unsigned, unsigned>>& pairs,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  constexpr const char* kWhere = "gcl::collectivePermute";
  const unsigned num_replicas = graph.getReplicationFactor();
  std::vector<bool> receives(num_replicas);
  ReplicaGroups groups;
  for (const auto& [from, to] : pairs) {
    if (from >= num_replicas || to >= num_replicas || receives[to]) {
      refuse(kWhere, "pairs of the " + std::to_string(num_replicas) + " replicas, each target once",
             std::to_string(from) + " -> " + std::to_string(to), "Check the pairs.");
    }
    receives[to] = true;
    groups.push_back({from, to});
  }
  checkSame(kWhere, data, destination, data.shape());
  emitMove(graph, "permute", data, destination, groups, prog, {debugContext, "permute"},
           gcl::sendCost(graph.getTarget(), data.elementType(), data.numElements(), pairs,
                         num_replicas));
}

Tensor collectivePermute(poplar::Graph& graph, const Tensor& data,
                         const std::vector<std::pair<unsigned, unsigned>>& pairs,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  const Tensor result = variable(graph, data, data.shape(), {debugContext, "permuted"});
  collectivePermuteToDestination(graph, data, result, pairs, prog, debugContext);
  return result;
}

}  // namespace gcl::groups
