#include "popx/hardware/PopopsExpr.hpp"

#include <string>

#include "poplar/exceptions.hpp"

namespace popx {
namespace {

namespace pe = popops::expr;
using expr::Node;
using expr::Op;
using poplar::Tensor;

template <class T>
T valueOf(const Node& node) {
  return node.is_real ? static_cast<T>(node.real) : static_cast<T>(node.integer);
}

/// Calls `use` with the value as the host type of the constant's type.
template <class Use>
auto withValue(const Node& node, const Use& use) {
  const auto type = node.type;
  if (type == poplar::FLOAT || type == poplar::HALF) return use(valueOf<float>(node));
  if (type == poplar::BOOL) return use(node.is_real ? node.real != 0 : node.integer != 0);
  if (type == poplar::UNSIGNED_INT) return use(valueOf<unsigned>(node));
  if (type == poplar::UNSIGNED_SHORT) return use(valueOf<unsigned short>(node));
  if (type == poplar::SHORT) return use(valueOf<short>(node));
  if (type == poplar::UNSIGNED_CHAR) return use(valueOf<unsigned char>(node));
  if (type == poplar::SIGNED_CHAR) return use(valueOf<signed char>(node));
  if (type == poplar::CHAR) return use(valueOf<char>(node));
  if (type == poplar::LONGLONG) return use(valueOf<long long>(node));
  if (type == poplar::UNSIGNED_LONGLONG) return use(valueOf<unsigned long long>(node));
  if (type == poplar::INT) return use(valueOf<int>(node));
  throw poplar::poplar_error("[popx::expr] needs a constant of a type of the device; got " +
                             type.toString() + ". Cast it.");
}

pe::Any constantOf(const Node& node) {
  if (node.type == poplar::HALF) return pe::ConstHalf(valueOf<float>(node));
  return withValue(node, [](auto x) -> pe::Any { return pe::Const(x); });
}

pe::Any unary(Op op, const pe::Expr& a) {
  switch (op) {
#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  case Op::k##Name:                    \
    return pe::UnaryOp(pe::UnaryOpType::TYPE, a);
#include "engine/ops/ElementwiseOps.def"
    default:
      throw poplar::poplar_error(
          "[popx::expr] needs an operation of popops; got another of one "
          "operand. Use those that have a class.");
  }
}

pe::Any binary(Op op, const pe::Expr& a, const pe::Expr& b) {
  switch (op) {
#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  case Op::k##Name:                    \
    return pe::BinaryOp(pe::BinaryOpType::TYPE, a, b);
#include "engine/ops/ElementwiseOps.def"
    default:
      throw poplar::poplar_error(
          "[popx::expr] needs an operation of popops; got another of two "
          "operands. Use those that have a class.");
  }
}

}  // namespace

Tensor constantTensor(poplar::Graph& graph, const Node& constant,
                      const poplar::DebugContext& debugContext) {
  const Tensor t = withValue(constant, [&](auto x) {
    return graph.addConstant<decltype(x)>(constant.type, {}, x, {debugContext, "constant"});
  });
  graph.setTileMapping(t, 0);
  return t;
}

PopopsExpr::PopopsExpr(poplar::Graph& graph, const Node& root, const Values& values,
                       const poplar::DebugContext& debugContext)
    : graph_(graph), values_(values), debug_(debugContext), expr_(made(root)) {
  if (!tensors_.empty()) return;
  constants_are_tensors_ = true;
  expr_ = made(root);
}

pe::Any PopopsExpr::placeHolder(const Node& node, const Tensor& value) {
  const auto [place, is_new] =
      places_.try_emplace(&node, static_cast<unsigned>(tensors_.size() + 1));
  if (is_new) tensors_.push_back(value);
  return pe::PlaceHolder(place->second);
}

pe::Any PopopsExpr::made(const Node& node) {
  if (const auto value = values_.find(&node); value != values_.end())
    return placeHolder(node, value->second);
  if (node.kind == Node::Kind::kOp) return operation(node);
  return constants_are_tensors_ ? placeHolder(node, constantTensor(graph_, node, debug_))
                                : constantOf(node);
}

pe::Any PopopsExpr::operation(const Node& node) {
  const pe::Any a = made(*node.args[0]);
  if (node.op == Op::kCast) return pe::Cast(a, node.type);
  if (node.args.size() == 1) return unary(node.op, a);
  const pe::Any b = made(*node.args[1]);
  if (node.args.size() == 2) return binary(node.op, a, b);
  const pe::Any c = made(*node.args[2]);
  return pe::TernaryOp(
      node.op == Op::kSelect ? pe::TernaryOpType::SELECT : pe::TernaryOpType::CLAMP, a, b, c);
}

}  // namespace popx
