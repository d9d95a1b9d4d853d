#include "popx/ReplicaGroups.hpp"

#include <algorithm>
#include <string>

#include "poplar/exceptions.hpp"
#include "popops/Cast.hpp"
#include "popx/hardware/MapOne.hpp"
#include "popx/hardware/Replicas.hpp"

namespace popx {
namespace {

namespace pe = expr;
using gcl::CollectiveOperator;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

[[noreturn]] void refuse(const std::string& where, const std::string& needs, const std::string& got,
                         const std::string& fix) {
  throw poplar::poplar_error("[" + where + "] needs " + needs + "; got " + got + ". " + fix);
}

bool isReal(const Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }

bool isLogical(CollectiveOperator op) {
  return op == CollectiveOperator::LOGICAL_AND || op == CollectiveOperator::LOGICAL_OR;
}

void checkOperator(const char* where, CollectiveOperator op, const Type& type) {
  const bool squares = op == CollectiveOperator::SQUARE_ADD && type == poplar::BOOL;
  if ((!isLogical(op) || !isReal(type)) && (op != CollectiveOperator::MEAN || isReal(type)) &&
      !squares)
    return;
  const char* const name = op == CollectiveOperator::LOGICAL_AND  ? "LOGICAL_AND"
                           : op == CollectiveOperator::LOGICAL_OR ? "LOGICAL_OR"
                           : op == CollectiveOperator::MEAN       ? "MEAN"
                                                                  : "SQUARE_ADD";
  refuse(where, "an operator that has a meaning for the type",
         std::string(name) + " of " + type.toString(), "Cast the data, or use another operator.");
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

/// Whether gcl combines such data itself.
bool isOfGcl(CollectiveOperator op, const Type& type) {
  if (isLogical(op)) return type == poplar::BOOL;
  return isReal(type) || type == poplar::INT || type == poplar::UNSIGNED_INT;
}

/// One more array in the combination; `x` is of the type in which it is made.
pe::Expr combined(CollectiveOperator op, const Type& type, const pe::Expr& sum, const pe::Expr& x) {
  const bool is_bool = type == poplar::BOOL;
  switch (op) {
    case CollectiveOperator::MUL:
      return is_bool ? pe::Expr(sum && x) : pe::Expr(sum * x);
    case CollectiveOperator::MIN:
      return is_bool ? pe::Expr(sum && x) : pe::Expr(pe::Min(sum, x));
    case CollectiveOperator::MAX:
      return is_bool ? pe::Expr(sum || x) : pe::Expr(pe::Max(sum, x));
    case CollectiveOperator::LOGICAL_AND:
      return is_bool ? pe::Expr(sum && x) : pe::Expr(sum & x);
    case CollectiveOperator::LOGICAL_OR:
      return is_bool ? pe::Expr(sum || x) : pe::Expr(sum | x);
    default:
      return is_bool ? pe::Expr(sum || x) : pe::Expr(sum + x);
  }
}

/// The combination of groups that gcl does not know: every member gets all arrays.
class Combination {
 public:
  Combination(Graph& graph, CollectiveOperator op, const ReplicaGroups& groups, Sequence& prog,
              const DebugContext& debug)
      : graph_(graph),
        op_(op),
        groups_(groups),
        prog_(prog),
        debug_(debug),
        replicas_(graph, prog, debug) {}

  /// Of the flattened data.
  Tensor of(const Tensor& data) {
    if (op_ == CollectiveOperator::LOCAL || data.numElements() == 0)
      return replicas_.copied(data.flatten(), "own");
    const Type type = data.elementType();
    Tensor arrays = replicas_.gathered(data, groups_, restFor(data));
    if (type == poplar::HALF)
      arrays = popops::cast(graph_, arrays, poplar::FLOAT, prog_, {debug_, "wide"});
    Tensor result = reduced(arrays);
    if (op_ == CollectiveOperator::MEAN)
      result = mapOne(graph_, pe::_1 / pe::_2, {result, sizeOfGroup()}, prog_, debug_);
    return type == poplar::HALF ? popops::cast(graph_, result, type, prog_, {debug_, "rounded"})
                                : result;
  }

  Replicas& replicas() { return replicas_; }

 private:
  bool areEqual() const {
    for (const auto& group : groups_)
      if (group.size() != groups_[0].size()) return false;
    return true;
  }

  /// What stands for the members that smaller groups lack: no change by it. Where an array may be
  /// combined twice, no array is needed.
  std::optional<Tensor> restFor(const Tensor& data) {
    const bool sums = op_ == CollectiveOperator::ADD || op_ == CollectiveOperator::MEAN ||
                      op_ == CollectiveOperator::SQUARE_ADD || op_ == CollectiveOperator::MUL;
    if (areEqual() || !sums) return {};
    const Type type = data.elementType();
    const float neutral = op_ == CollectiveOperator::MUL ? 1.0f : isReal(type) ? -0.0f : 0.0f;
    const Tensor one = graph_.addConstant<float>(type, {}, neutral, {debug_, "neutral"});
    graph_.setTileMapping(one, 0);
    return one.reshape({1}).broadcast(static_cast<unsigned>(data.numElements()), 0);
  }

  /// In the members' order, a few arrays in a map.
  Tensor reduced(const Tensor& arrays) {
    constexpr std::size_t kArrays = 8;
    const bool squares = op_ == CollectiveOperator::SQUARE_ADD;
    Tensor sum = arrays[0];
    if (squares) sum = mapOne(graph_, pe::_1 * pe::_1, {sum}, prog_, debug_);
    if (arrays.dim(0) == 1 && !squares) return replicas_.copied(sum, "combined");
    for (std::size_t begin = 1; begin < arrays.dim(0); begin += kArrays) {
      Tensors ts = {sum};
      pe::Expr e = pe::_1;
      for (std::size_t m = begin; m < std::min(begin + kArrays, arrays.dim(0)); ++m) {
        ts.push_back(arrays[m]);
        const pe::PlaceHolder x(static_cast<unsigned>(ts.size()));
        e = combined(op_, arrays.elementType(), e, squares ? pe::Expr(x * x) : pe::Expr(x));
      }
      sum = mapOne(graph_, e, ts, prog_, {debug_, "combined"});
    }
    return sum;
  }

  Tensor sizeOfGroup() {
    std::vector<float> sizes(largestOf(groups_));
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<float>(i + 1);
    const Tensor all = graph_.addConstant<float>(poplar::FLOAT, {sizes.size()}, sizes, debug_);
    graph_.setTileMapping(all, 0);
    if (areEqual()) return all[groups_[0].size() - 1];
    std::vector<unsigned> table(replicas_.count());
    for (const auto& group : groups_)
      for (const unsigned r : group) table[r] = static_cast<unsigned>(group.size() - 1);
    return replicas_.chosen(all, table);
  }

  Graph& graph_;
  CollectiveOperator op_;
  const ReplicaGroups& groups_;
  Sequence& prog_;
  DebugContext debug_;
  Replicas replicas_;
};

/// The group's part of a replica, of data [parts, ...].
Tensor ownPart(Replicas& replicas, const Tensor& parts, const ReplicaGroups& groups) {
  return replicas.chosen(parts, placesOf(groups, replicas.count()));
}

}  // namespace

Tensors allReduce(Graph& graph, const Tensors& datas, CollectiveOperator op,
                  const ReplicaGroups& groups, Sequence& prog, const DebugContext& debugContext,
                  const OptionFlags& options) {
  constexpr const char* kWhere = "popx::allReduce";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, false);
  const auto group = commGroupOf(groups, graph.getReplicationFactor());
  Tensors results;
  for (const Tensor& data : datas) {
    checkOperator(kWhere, op, data.elementType());
    if (group && isOfGcl(op, data.elementType())) {
      results.push_back(
          gcl::allReduceCrossReplica(graph, data, op, prog, *group, debugContext, options));
      continue;
    }
    Combination combination(graph, op, groups, prog, {debugContext, "allReduce"});
    results.push_back(combination.of(data).reshape(data.shape()));
  }
  return results;
}

Tensors reduceScatter(Graph& graph, const Tensors& datas, CollectiveOperator op,
                      const ReplicaGroups& groups, Sequence& prog, const DebugContext& debugContext,
                      const OptionFlags& options) {
  constexpr const char* kWhere = "popx::reduceScatter";
  checkGroups(kWhere, groups, graph.getReplicationFactor(), true, true);
  const auto group = commGroupOf(groups, graph.getReplicationFactor());
  Tensors results;
  for (const Tensor& data : datas) {
    checkOperator(kWhere, op, data.elementType());
    if (group && isOfGcl(op, data.elementType())) {
      results.push_back(
          gcl::reduceScatterCrossReplica(graph, data, op, prog, *group, debugContext, options));
      continue;
    }
    Combination combination(graph, op, groups, prog, {debugContext, "reduceScatter"});
    const std::size_t p = groups[0].size(), share = (data.numElements() + p - 1) / p;
    Tensor whole = combination.of(data);
    if (p * share > whole.numElements()) {
      const auto beyond = static_cast<unsigned>(p * share - whole.numElements());
      const Tensor zeros =
          combination.replicas().zerosLike(whole[0].reshape({1}).broadcast(beyond, 0));
      whole = poplar::concat(whole, zeros, 0);
    }
    whole = whole.reshape({p, share});
    results.push_back(ownPart(combination.replicas(), whole, groups));
  }
  return results;
}

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

/// Of each distance in the group: what is for the member so far on goes there.
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
  // For member j: row s is for, or from, the s-th member before it, or after it.
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

/// In twice as many members with each round.
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
