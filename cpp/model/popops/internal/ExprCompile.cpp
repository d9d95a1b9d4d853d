#include "popops/internal/ExprCompile.hpp"

#include <optional>
#include <unordered_map>

#include "poputil/exceptions.hpp"

namespace popops::internal {

namespace {
using ipujax::engine::ElementType;
using ipujax::engine::expr::ExprBuilder;
using ipujax::engine::expr::Op;
using popops::expr::Node;

/// Walks the graph of nodes without recursion, visiting a node once for each type it is needed in.
class Compiler {
 public:
  explicit Compiler(std::vector<ElementType> types) : builder_(std::move(types)) {}

  std::int32_t value(const Node& root) {
    std::vector<const Node*> pending{&root};
    while (!pending.empty()) {
      const Node& node = *pending.back();
      if (values_.count(&node) || node.kind == Node::Kind::kConst) {
        pending.pop_back();
        continue;
      }
      bool ready = true;
      for (const auto& arg : node.args) {
        if (arg->kind == Node::Kind::kConst || values_.count(arg.get())) continue;
        pending.push_back(arg.get());
        ready = false;
      }
      if (!ready) continue;
      const std::int32_t made = make(node);
      if (node.stream != 0) builder_.setStream(made, node.stream);
      values_.emplace(&node, made);
      pending.pop_back();
    }
    if (root.kind == Node::Kind::kConst) return constant(root, root.type.element());
    return values_.at(&root);
  }

  ExprBuilder& builder() { return builder_; }

 private:
  std::int32_t constant(const Node& node, ElementType type) {
    if (node.is_real) return builder_.constantFrom(type, node.real);
    switch (type) {
      case ElementType::kFloat:
      case ElementType::kHalf:
      case ElementType::kDouble:
        return builder_.constantFrom(type, static_cast<double>(node.integer));
      case ElementType::kBool:
        return builder_.constant(type, node.integer != 0);
      default:
        return builder_.constant(type, node.integer);
    }
  }

  /// The type that constants take: that of the first other operand, else of the first typed
  /// constant.
  std::optional<ElementType> sharedType(const Node& node, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      const Node& arg = *node.args[k];
      if (arg.kind != Node::Kind::kConst) return builder_.typeOf(values_.at(&arg));
    }
    for (std::size_t k = 0; k < count; ++k)
      if (node.args[k]->fixed_type) return node.args[k]->type.element();
    return std::nullopt;
  }

  std::int32_t operand(const Node& arg, std::optional<ElementType> type) {
    if (arg.kind != Node::Kind::kConst) return values_.at(&arg);
    return constant(arg, arg.fixed_type || !type ? arg.type.element() : *type);
  }

  std::int32_t make(const Node& node) {
    if (node.kind == Node::Kind::kPlaceHolder)
      return builder_.input(static_cast<std::size_t>(node.immediate - 1));
    if (node.op == Op::kCast) return builder_.cast(operand(*node.args[0], {}), node.type.element());
    if (node.op == Op::kBitcast)
      return builder_.bitcast(operand(*node.args[0], {}), node.type.element());
    if (node.op == Op::kReducePrecision)
      return builder_.reducePrecision(operand(*node.args[0], {}),
                                      static_cast<int>(node.immediate / 256),
                                      static_cast<int>(node.immediate % 256));
    // The predicate of a selection is bool whatever the values are.
    const bool select = node.op == Op::kSelect;
    const auto type = sharedType(node, select ? 2 : node.args.size());
    std::vector<std::int32_t> args;
    for (std::size_t k = 0; k < node.args.size(); ++k)
      args.push_back(
          operand(*node.args[k], select && k == 2 ? std::optional(ElementType::kBool) : type));
    return builder_.apply(node.op, args);
  }

  ExprBuilder builder_;
  std::unordered_map<const Node*, std::int32_t> values_;
};
}  // namespace

ipujax::engine::expr::ExprProgram compileExpr(const std::vector<popops::expr::Expr>& exprs,
                                              const std::vector<poplar::Type>& inputTypes) {
  std::vector<ElementType> types;
  types.reserve(inputTypes.size());
  for (auto t : inputTypes) types.push_back(t.element());
  try {
    Compiler compiler(std::move(types));
    for (const auto& e : exprs) compiler.builder().output(compiler.value(*e.node()));
    return compiler.builder().build();
  } catch (const std::invalid_argument& e) {
    throw poputil::poplibs_error(e.what());
  }
}

}  // namespace popops::internal
