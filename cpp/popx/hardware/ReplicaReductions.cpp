#include <algorithm>
#include <string>

#include "poplar/exceptions.hpp"
#include "popops/Cast.hpp"
#include "popops/Zero.hpp"
#include "poputil/TileMapping.hpp"
#include "popx/ReplicaGroups.hpp"
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
  throw poplar::poplar_error(
      "[" + std::string(where) + "] needs an operator that has a meaning for the type; got " +
      name + " of " + type.toString() + ". Cast the data, or use another operator.");
}

/// Whether gcl combines such data itself.
bool isOfGcl(CollectiveOperator op, const Type& type) {
  if (isLogical(op)) return type == poplar::BOOL;
  return isReal(type) || type == poplar::INT || type == poplar::UNSIGNED_INT;
}

/// Combines one more array, `x`, in the type of the computation.
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

/// The combination of groups that gcl does not support: every member gets all arrays.
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

  /// The combination of the flattened data.
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

  /// A neutral array for the members that smaller groups lack; nullopt if groups are equal or
  /// arrays may be combined twice.
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

  /// Combines the members' arrays as a balanced tree, split at the largest power of two below their
  /// number, a few per map. Neutral arrays at the end do not change the tree of those before them.
  Tensor reduced(const Tensor& arrays) {
    constexpr std::size_t kArrays = 8;
    const std::size_t n = arrays.dim(0);
    const bool squares = op_ == CollectiveOperator::SQUARE_ADD;
    if (n == 1 && !squares) return replicas_.copied(arrays[0], "combined");
    if (n <= kArrays) {
      Tensors ts;
      const pe::Expr e = treeOf(arrays, ts);
      return mapOne(graph_, e, ts, prog_, {debug_, "combined"});
    }
    const std::size_t left = leftOf(n);
    const Tensors halves{reduced(arrays.slice(0, left)), reduced(arrays.slice(left, n))};
    const pe::Expr e = combined(op_, arrays.elementType(), pe::_1, pe::_2);
    return mapOne(graph_, e, halves, prog_, {debug_, "combined"});
  }

  static std::size_t leftOf(std::size_t n) {
    std::size_t left = 1;
    while (2 * left < n) left *= 2;
    return left;
  }

  /// The expression of the tree over the arrays, which are appended to the operands.
  pe::Expr treeOf(const Tensor& arrays, Tensors& operands) {
    const std::size_t n = arrays.dim(0);
    if (n == 1) {
      operands.push_back(arrays[0]);
      const pe::PlaceHolder x(static_cast<unsigned>(operands.size()));
      return op_ == CollectiveOperator::SQUARE_ADD ? pe::Expr(x * x) : pe::Expr(x);
    }
    const std::size_t left = leftOf(n);
    const pe::Expr a = treeOf(arrays.slice(0, left), operands);
    const pe::Expr b = treeOf(arrays.slice(left, n), operands);
    return combined(op_, arrays.elementType(), a, b);
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

/// Each replica's part of its group's data [parts, ...].
Tensor ownPart(Replicas& replicas, const Tensor& parts, const ReplicaGroups& groups) {
  return replicas.chosen(parts, placesOf(groups, replicas.count()));
}

/// A tensor that gcl scatters as the whole of `data`: if a replica has several IPUs, gcl scatters
/// the elements on each of them separately. A copy whose rows are the parts, padded with zeros, has
/// the same elements of every part on a tile.
Tensor scatterable(Graph& graph, const Tensor& data, std::size_t parts, Sequence& prog,
                   const DebugContext& debug) {
  const std::size_t n = data.numElements(), share = (n + parts - 1) / parts;
  if (graph.getTarget().getNumIPUs() == 1 || n == 0) return data;
  const Tensor columns = graph.addVariable(data.elementType(), {share, parts}, debug);
  const auto grain = static_cast<unsigned>(parts);
  poputil::mapTensorLinearly(graph, columns, grain, grain);
  const Tensor rows = columns.transpose().flatten();
  prog.add(poplar::program::Copy(data.flatten(), rows.slice(0, n), false, debug));
  if (n < rows.numElements()) popops::zero(graph, rows.slice(n, rows.numElements()), prog, debug);
  return rows;
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
    const std::size_t p = groups[0].size(), share = (data.numElements() + p - 1) / p;
    if (group && isOfGcl(op, data.elementType())) {
      const Tensor whole = scatterable(graph, data, p, prog, {debugContext, "scatterable"});
      results.push_back(
          gcl::reduceScatterCrossReplica(graph, whole, op, prog, *group, debugContext, options));
      continue;
    }
    Combination combination(graph, op, groups, prog, {debugContext, "reduceScatter"});
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

}  // namespace popx
