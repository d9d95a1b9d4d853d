#include "popx/hardware/Rewriter.hpp"

#include <string>

#include "poplar/exceptions.hpp"
#include "popx/hardware/Formulas.hpp"

namespace popx {
namespace {

using expr::Expr;
using expr::Node;
using expr::NodeRef;
using expr::Op;
using poplar::Type;

bool isConstant(const Node& node) { return node.kind == Node::Kind::kConst; }

/// The same value in another type.
NodeRef constantOf(const Node& node, const Type& type) {
  return node.is_real ? expr::Const(type, node.real).node()
                      : expr::Const(type, node.integer).node();
}

bool givesBool(Op op) {
  constexpr bool kPlain = false, kKeepsHalves = false, kCommutative = false, kGivesBool = true,
                 kHasImmediate = false;
  static const bool gives[] = {
#define OP(Name, name, operands, traits, ...) (traits) != 0,
#include "engine/ops/ElementwiseOps.def"
  };
  return gives[static_cast<std::size_t>(op)];
}

}  // namespace

std::vector<const Node*> inOrder(const std::vector<Expr>& roots) {
  std::vector<const Node*> order, pending;
  std::unordered_map<const Node*, bool> placed;  // false: its operands come first
  for (auto root = roots.rbegin(); root != roots.rend(); ++root)
    pending.push_back(root->node().get());
  while (!pending.empty()) {
    const Node* node = pending.back();
    const auto [entry, is_new] = placed.try_emplace(node, false);
    if (is_new) {
      for (const NodeRef& arg : node->args)
        if (!placed.count(arg.get())) pending.push_back(arg.get());
      continue;
    }
    pending.pop_back();
    if (!entry->second) order.push_back(node);
    entry->second = true;
  }
  return order;
}

std::vector<Expr> Rewriter::rewritten(const std::vector<Expr>& roots) {
  for (const Node* node : inOrder(roots)) {
    if (node->kind == Node::Kind::kOp) {
      done_.emplace(node, operation(*node));
    } else if (node->kind == Node::Kind::kPlaceHolder) {
      const auto index = static_cast<std::size_t>(node->immediate);
      if (index > types_.size())
        throw poplar::poplar_error("[popx::map] needs a tensor for each placeholder; got " +
                                   std::to_string(types_.size()) + " and _" +
                                   std::to_string(index) + ". Pass all tensors.");
      done_.emplace(node,
                    Typed{expr::PlaceHolder(static_cast<unsigned>(index)), types_[index - 1]});
    } else {
      done_.emplace(node, Typed{Expr(constantOf(*node, node->type)), node->type});
    }
  }
  std::vector<Expr> results;
  for (const Expr& root : roots) results.push_back(done_.at(root.node().get()).expr);
  return results;
}

/// The type of the first operand that is not a constant, else of the first constant with a fixed
/// type.
Type Rewriter::sharedType(const Node& node, std::size_t count) const {
  for (std::size_t k = 0; k < count; ++k)
    if (!isConstant(*node.args[k])) return done_.at(node.args[k].get()).type;
  for (std::size_t k = 0; k < count; ++k)
    if (node.args[k]->fixed_type) return node.args[k]->type;
  return node.args[0]->type;
}

Rewriter::Typed Rewriter::operation(const Node& node) const {
  // The predicate of a selection is BOOL whatever the values are.
  const bool selects = node.op == Op::kSelect;
  const Type type = sharedType(node, selects ? 2 : node.args.size());
  std::vector<Expr> args;
  for (std::size_t k = 0; k < node.args.size(); ++k) {
    const Node& arg = *node.args[k];
    const Type& wanted = selects && k == 2 ? poplar::BOOL : type;
    args.push_back(isConstant(arg) && !arg.fixed_type ? Expr(constantOf(arg, wanted))
                                                      : done_.at(&arg).expr);
  }
  if (formulas::has(node.op)) return function(node, args, type);
  if ((node.op == Op::kCast || node.op == Op::kBitcast) && node.type == type)
    return {args[0], type};
  std::vector<NodeRef> operands;
  for (const Expr& arg : args) operands.push_back(arg.node());
  const bool converts = node.op == Op::kCast || node.op == Op::kBitcast;
  return {Expr(expr::makeOp(node.op, operands, node.type, node.immediate)), converts ? node.type
                                                                            : givesBool(node.op)
                                                                                ? poplar::BOOL
                                                                                : type};
}

/// Functions of values are computed in FLOAT and rounded once.
Rewriter::Typed Rewriter::function(const Node& node, const std::vector<Expr>& args,
                                   const Type& type) const {
  std::vector<Expr> simple;
  if (formulas::isOfBits(node.op)) {
    simple = {formulas::ofBits(node, args[0], type)};
  } else {
    std::vector<Expr> wide;
    for (const Expr& arg : args)
      wide.push_back(type == poplar::FLOAT ? arg : expr::Cast(arg, poplar::FLOAT));
    const Expr result = formulas::ofFloats(node.op, wide[0], wide.back());
    simple = {type == poplar::FLOAT ? result : expr::Cast(result, type)};
  }
  const Type result = node.op == Op::kFromBFloat16 ? poplar::FLOAT
                      : node.op == Op::kToBFloat16 ? poplar::UNSIGNED_SHORT
                                                   : type;
  // The formula's own constants take their types here; it uses no function that popops lacks.
  return {simple[0], result};
}

}  // namespace popx
