#include "popops/Expr.hpp"

#include <iomanip>
#include <limits>
#include <sstream>
#include <unordered_set>

#include "poputil/exceptions.hpp"

namespace popops::expr {

namespace {
using ipujax::engine::expr::Op;

bool sameNode(const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.type == b.type && a.immediate == b.immediate &&
         a.is_real == b.is_real && (a.real == b.real || (a.real != a.real && b.real != b.real)) &&
         a.integer == b.integer && a.args.size() == b.args.size();
}

void print(std::ostream& os, const Node& node, int depth) {
  if (depth > 64) {
    os << "...";
    return;
  }
  if (node.kind == Node::Kind::kPlaceHolder) {
    os << "_" << node.immediate;
  } else if (node.kind == Node::Kind::kConst) {
    if (node.is_real)
      os << node.real;
    else
      os << node.integer;
  } else {
    os << nameOf(node.op) << "(";
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (i) os << ", ";
      print(os, *node.args[i], depth + 1);
    }
    os << ")";
  }
}
}  // namespace

Node::~Node() {
  std::vector<NodeRef> pending = std::move(args);
  while (!pending.empty()) {
    NodeRef last = std::move(pending.back());
    pending.pop_back();
    if (last && last.use_count() == 1 && !last->args.empty()) {
      auto& children = const_cast<Node&>(*last).args;
      for (auto& child : children) pending.push_back(std::move(child));
      children.clear();
    }
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

bool Expr::deepEquals(const Expr& other) const {
  std::vector<std::pair<const Node*, const Node*>> pending{{node_.get(), other.node_.get()}};
  std::unordered_set<std::size_t> seen;
  while (!pending.empty()) {
    const auto [a, b] = pending.back();
    pending.pop_back();
    if (a == b) continue;
    if (!sameNode(*a, *b)) return false;
    const auto key = reinterpret_cast<std::size_t>(a) * 31 + reinterpret_cast<std::size_t>(b);
    if (!seen.insert(key).second) continue;
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

namespace {
NodeRef makePlaceHolder(unsigned index) {
  if (index == 0)
    throw poputil::poplibs_error(
        "[popops::expr::PlaceHolder] needs an index from 1; got 0. Use 1 for the first tensor.");
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::kPlaceHolder;
  node->immediate = index;
  return node;
}
}  // namespace

std::string Const::printValue() const {
  if (!node_->is_real) return std::to_string(node_->integer);
  std::ostringstream text;
  text << std::setprecision(std::numeric_limits<float>::max_digits10) << node_->real;
  return text.str();
}

bool Cast::isClassOf(const Node& node) {
  return node.kind == Node::Kind::kOp && node.op == Op::kCast;
}

bool UnaryOp::isClassOf(const Node& node) {
  if (node.kind != Node::Kind::kOp) return false;
#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (node.op == Op::k##Name) return true;
#include "engine/expr/ElementwiseOps.def"
  return false;
}

bool BinaryOp::isClassOf(const Node& node) {
  if (node.kind != Node::Kind::kOp) return false;
#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (node.op == Op::k##Name) return true;
#include "engine/expr/ElementwiseOps.def"
  return false;
}

bool TernaryOp::isClassOf(const Node& node) {
  if (node.kind != Node::Kind::kOp) return false;
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (node.op == Op::k##Name) return true;
#include "engine/expr/ElementwiseOps.def"
  return false;
}

PlaceHolder::PlaceHolder(unsigned index) : Expr(makePlaceHolder(index)) {}
Cast::Cast(const Expr& a, poplar::Type type) : Expr(makeOp(Op::kCast, {a.node()}, type)) {}
UnaryOp::UnaryOp(UnaryOpType type, const Expr& a)
    : Expr(makeOp(static_cast<Op>(type), {a.node()})) {}
BinaryOp::BinaryOp(BinaryOpType type, const Expr& a, const Expr& b)
    : Expr(makeOp(static_cast<Op>(type), {a.node(), b.node()})) {}
TernaryOp::TernaryOp(TernaryOpType type, const Expr& a, const Expr& b, const Expr& c)
    : Expr(makeOp(static_cast<Op>(type), {a.node(), b.node(), c.node()})) {}

}  // namespace popops::expr
