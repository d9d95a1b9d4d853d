#include "popx/Map.hpp"

#include "poplar/exceptions.hpp"
#include "popops/ElementWise.hpp"
#include "poputil/Broadcast.hpp"
#include "popx/hardware/PopopsExpr.hpp"
#include "popx/hardware/Rewriter.hpp"

namespace popx {
namespace {

using expr::Expr;
using expr::Node;
using expr::Op;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

/// The most operations in one map, and in an expression that is recomputed wherever it is used.
constexpr std::size_t kMost = 256;
constexpr std::size_t kMostShared = 6;

std::vector<std::size_t> commonShape(const Tensors& ts) {
  if (ts.empty())
    throw poplar::poplar_error(
        "[popx::map] needs at least one tensor; got none. Pass one of the result's shape.");
  Tensor common = ts[0];
  for (Tensor t : ts) poputil::broadcastToMatch(common, t);
  return common.shape();
}

/// Expressions as steps: a popops::map for each result, for each operand of a bitcast, and for
/// expressions that are too large to recompute wherever they are used.
class Steps {
 public:
  Steps(Graph& graph, const Tensors& ts, Sequence& prog, const poplar::DebugContext& debug)
      : graph_(graph), ts_(ts), shape_(commonShape(ts)), prog_(prog), debug_(debug) {}

  Tensors run(const std::vector<Expr>& given) {
    std::vector<poplar::Type> types;
    for (const Tensor& t : ts_) types.push_back(t.elementType());
    Rewriter rewriter(types);
    const std::vector<Expr> exprs = rewriter.rewritten(given);
    const auto order = inOrder(exprs);
    countUses(exprs, order);
    for (const Node* node : order) add(*node);
    Tensors results;
    for (const Expr& e : exprs) results.push_back(result(*e.node()));
    return results;
  }

 private:
  struct Use {
    std::size_t times = 0, size = 0;
    bool is_step = false;  ///< a bitcast or a result needs it as a tensor
  };

  void countUses(const std::vector<Expr>& exprs, const std::vector<const Node*>& order) {
    for (const Node* node : order) {
      for (const auto& arg : node->args) {
        ++uses_[arg.get()].times;
        if (node->op == Op::kBitcast) uses_[arg.get()].is_step = true;
      }
    }
    for (const Expr& e : exprs) uses_[e.node().get()].is_step = true;
  }

  void add(const Node& node) {
    if (node.kind == Node::Kind::kPlaceHolder) {
      values_.emplace(&node, ts_[static_cast<std::size_t>(node.immediate) - 1]);
      return;
    }
    Use& use = uses_[&node];
    if (node.kind == Node::Kind::kConst) {
      if (use.is_step) values_.emplace(&node, constantTensor(graph_, node, debug_));
      return;
    }
    if (node.op == Op::kBitcast) {
      values_.emplace(&node, values_.at(node.args[0].get()).reinterpret(node.type));
      return;
    }
    use.size = 1;
    for (const auto& arg : node.args)
      if (!values_.count(arg.get())) use.size += uses_[arg.get()].size;
    if (!use.is_step && use.size <= (use.times > 1 ? kMostShared : kMost)) return;
    const PopopsExpr one(graph_, node, values_, debug_);
    const Tensor made = popops::map(graph_, one.expr(), one.tensors(), prog_, debug_);
    values_.emplace(&node, made);
    own_.emplace(&node, made);
  }

  /// A tensor that nothing else uses: the step's own, the first time, or a copy.
  Tensor result(const Node& node) {
    Tensor value = values_.at(&node);
    const auto own = own_.extract(&node);
    if (!own.empty() && value.shape() == shape_) return value;
    poputil::broadcastToMatch(value, shape_);
    const Tensor copy = graph_.addVariable(value.elementType(), shape_,
                                           poplar::VariableMappingMethod::LINEAR, debug_);
    prog_.add(poplar::program::Copy(value, copy, false, debug_));
    return copy;
  }

  Graph& graph_;
  const Tensors& ts_;
  const std::vector<std::size_t> shape_;
  Sequence& prog_;
  const poplar::DebugContext& debug_;
  std::unordered_map<const Node*, Use> uses_{};
  Values values_{}, own_{};
};

}  // namespace

Tensors map(Graph& graph, const std::vector<Expr>& exprs, const Tensors& ts, Sequence& prog,
            const poplar::DebugContext& debugContext) {
  return Steps(graph, ts, prog, debugContext).run(exprs);
}

}  // namespace popx
