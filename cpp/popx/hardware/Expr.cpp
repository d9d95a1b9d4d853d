#include "popx/hardware/Expr.hpp"

#include <set>
#include <sstream>

#include "poplar/exceptions.hpp"

namespace popx::expr {
namespace {

const char* nameOf(Op op) {
  static const char* const names[] = {
#define OP(Name, name, ...) name,
#include "engine/ops/ElementwiseOps.def"
  };
  return names[static_cast<std::size_t>(op)];
}

bool sameNode(const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.type == b.type && a.immediate == b.immediate &&
         a.is_real == b.is_real && (a.real == b.real || (a.real != a.real && b.real != b.real)) &&
         a.integer == b.integer && a.args.size() == b.args.size();
}

void print(std::ostream& os, const Node& node, int depth) {
  if (depth > 16) {
    os << "...";
  } else if (node.kind == Node::Kind::kPlaceHolder) {
    os << "_" << node.immediate;
  } else if (node.kind == Node::Kind::kConst) {
    node.is_real ? os << node.real : os << node.integer;
  } else {
    os << nameOf(node.op) << "(";
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (i > 0) os << ", ";
      print(os, *node.args[i], depth + 1);
    }
    os << ")";
  }
}

NodeRef placeHolder(unsigned index) {
  if (index == 0)
    throw poplar::poplar_error(
        "[popx::expr::PlaceHolder] needs an index from 1; got 0. Use 1 for the first tensor.");
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::kPlaceHolder;
  node->immediate = index;
  return node;
}

}  // namespace

Node::~Node() {
  std::vector<NodeRef> pending = std::move(args);
  while (!pending.empty()) {
    const NodeRef last = std::move(pending.back());
    pending.pop_back();
    if (!last || last.use_count() > 1) continue;
    auto& children = const_cast<Node&>(*last).args;  // nobody else has it
    for (auto& child : children) pending.push_back(std::move(child));
    children.clear();
  }
}

NodeRef makeOp(Op op, std::vector<NodeRef> args, poplar::Type type, std::int64_t immediate) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->type = type;
  node->immediate = immediate;
  node->args = std::move(args);
  return node;
}

PlaceHolder::PlaceHolder(unsigned index) : Expr(placeHolder(index)) {}

bool Expr::deepEquals(const Expr& other) const {
  using Pair = std::pair<const Node*, const Node*>;
  std::vector<Pair> pending{{node_.get(), other.node_.get()}};
  std::set<Pair> seen;
  while (!pending.empty()) {
    const Pair pair = pending.back();
    pending.pop_back();
    const auto [a, b] = pair;
    if (a == b || !seen.insert(pair).second) continue;
    if (!sameNode(*a, *b)) return false;
    for (std::size_t i = 0; i < a->args.size(); ++i)
      pending.emplace_back(a->args[i].get(), b->args[i].get());
  }
  return true;
}

std::string Expr::toString() const {
  std::ostringstream os;
  print(os, *node_, 0);
  return os.str();
}

}  // namespace popx::expr
