#include "popops/Expr.hpp"

#include <cstring>
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

void printLines(std::ostream& os, const Node& node, unsigned indent, int depth) {
  os << std::string(indent, ' ');
  if (node.args.empty() || depth > 64) {
    print(os, node, depth);
    return;
  }
  os << nameOf(node.op) << "(\n";
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    printLines(os, *node.args[i], indent + 2, depth + 1);
    os << (i + 1 < node.args.size() ? ",\n" : ")");
  }
}

/// Reads a number from bytes of the host.
template <class T>
T numberIn(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

std::int64_t integerIn(const poplar::TypeTraits& host, const char* data) {
  switch (host.size) {
    case 1:
      return host.isSigned ? numberIn<std::int8_t>(data) : numberIn<std::uint8_t>(data);
    case 2:
      return host.isSigned ? numberIn<std::int16_t>(data) : numberIn<std::uint16_t>(data);
    case 4:
      return host.isSigned ? numberIn<std::int32_t>(data)
                           : static_cast<std::int64_t>(numberIn<std::uint32_t>(data));
    default:
      return numberIn<std::int64_t>(data);
  }
}

NodeRef constantOf(const poplar::TypeTraits& host, poplar::Type type, const char* data) {
  if (!host.isSimpleType() || host.size > 8)
    throw poputil::poplibs_error(
        "[popops::expr::Const] needs an integer or a number of float or double; got " +
        std::to_string(host.size) + " bytes. Use TypeTraits::make with such a type.");
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::kConst;
  node->type = type;
  node->fixed_type = true;
  node->host = host;
  node->is_real = host.isFloat;
  if (host.isFloat)
    node->real = host.size == sizeof(float) ? numberIn<float>(data) : numberIn<double>(data);
  else
    node->integer = integerIn(host, data);
  return node;
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

std::unique_ptr<Expr> Expr::clone() const {
  const NodeRef& n = node();
  if (PlaceHolder::isClassOf(*n)) return std::make_unique<PlaceHolder>(n);
  if (Const::isClassOf(*n)) return std::make_unique<Const>(n);
  if (Cast::isClassOf(*n)) return std::make_unique<Cast>(n);
  if (UnaryOp::isClassOf(*n)) return std::make_unique<UnaryOp>(n);
  if (BinaryOp::isClassOf(*n)) return std::make_unique<BinaryOp>(n);
  if (TernaryOp::isClassOf(*n)) return std::make_unique<TernaryOp>(n);
  return std::make_unique<Expr>(n);
}

const Expr& Expr::operand(std::size_t i) const {
  operands_.resize(node_->args.size());
  if (!operands_[i]) operands_[i] = Expr(node_->args[i]).clone();
  return *operands_[i];
}

void Expr::takeOperands() const {
  std::vector<NodeRef> args = node_->args;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (operands_[i]) args[i] = operands_[i]->node();
  if (args != node_->args)
    node_ = makeOp(node_->op, std::move(args), node_->type, node_->immediate);
}

bool Expr::deepEquals(const Expr& other) const {
  const NodeRef mine = node(), theirs = other.node();
  std::vector<std::pair<const Node*, const Node*>> pending{{mine.get(), theirs.get()}};
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
  print(os, 0, false);
  return os.str();
}

void Expr::print(std::ostream& os, unsigned indent, bool prettyPrint) const {
  if (prettyPrint) {
    printLines(os, *node(), indent, 0);
  } else {
    os << std::string(indent, ' ');
    expr::print(os, *node(), 0);
  }
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

Const::Const(const poplar::TypeTraits& host, poplar::Type type, const char* data)
    : Expr(constantOf(host, type, data)) {}

char* Const::getData() const {
  const Node& n = *node();
  const auto real_as_float = static_cast<float>(n.real);
  if (!n.is_real)
    std::memcpy(data_.data(), &n.integer, sizeof n.integer);  // little-endian: low bytes first
  else if (n.host.size == sizeof(float))
    std::memcpy(data_.data(), &real_as_float, sizeof real_as_float);
  else
    std::memcpy(data_.data(), &n.real, sizeof n.real);
  return data_.data();
}

std::uint64_t Const::getDataForUnsignedIntegral() const {
  if (node()->is_real)
    throw poputil::poplibs_error("[popops::expr::Const] needs an integer; got " + printValue() +
                                 ". Use getDataAsDouble.");
  return static_cast<std::uint64_t>(node()->integer);
}

std::string Const::printValue() const {
  if (!node()->is_real) return std::to_string(node()->integer);
  std::ostringstream text;
  text << std::setprecision(std::numeric_limits<float>::max_digits10) << node()->real;
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
#include "engine/ops/ElementwiseOps.def"
  return false;
}

bool BinaryOp::isClassOf(const Node& node) {
  if (node.kind != Node::Kind::kOp) return false;
#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (node.op == Op::k##Name) return true;
#include "engine/ops/ElementwiseOps.def"
  return false;
}

bool TernaryOp::isClassOf(const Node& node) {
  if (node.kind != Node::Kind::kOp) return false;
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (node.op == Op::k##Name) return true;
#include "engine/ops/ElementwiseOps.def"
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
