#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "poplar/Type.hpp"

/// popx::expr from public names: popops' expressions under their own names, and those it lacks.
/// They are separate graphs, from which popx::map makes popops' expressions. Those are trees: an
/// expression used twice is in them twice, so a chain of squares doubles with each.
namespace popx::expr {

enum class Op : std::uint8_t {
#define OP(Name, ...) k##Name,
#include "engine/ops/ElementwiseOps.def"
};

/// Immutable and shared: an expression that is used twice is one node.
struct Node {
  enum class Kind : std::uint8_t { kPlaceHolder, kConst, kOp };
  Kind kind = Kind::kOp;
  Op op = Op::kConstant;
  poplar::Type type;           ///< constant: its type; cast or bitcast: the result's type
  std::int64_t immediate = 0;  ///< placeholder: its index from 1; reduce precision: its bits
  bool is_real = false;        ///< constant: its value is `real`, else `integer`
  bool fixed_type = false;     ///< constant: never takes another operand's type
  double real = 0;
  std::int64_t integer = 0;
  std::vector<std::shared_ptr<const Node>> args;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  ///< frees deep expressions without recursion
};
using NodeRef = std::shared_ptr<const Node>;

/// Base of all expressions; a handle, cheap to copy.
class Expr {
 public:
  explicit Expr(NodeRef node) : node_(std::move(node)) {}
  bool deepEquals(const Expr& other) const;
  std::string toString() const;
  const NodeRef& node() const { return node_; }

 private:
  NodeRef node_;
};
using Any = Expr;

NodeRef makeOp(Op op, std::vector<NodeRef> args, poplar::Type type = {},
               std::int64_t immediate = 0);

/// A constant. Next to an operand of another type it takes that type, unless it was given one.
class Const : public Expr {
 public:
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Const(T x) : Expr(make(x, typeOf<T>(), false)) {}  // NOLINT: implicit as in popops
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Const(const poplar::Type& type, T x) : Expr(make(x, type, true)) {}

 private:
  template <typename T>
  static poplar::Type typeOf() {
    if constexpr (std::is_floating_point_v<T>)
      return poplar::FLOAT;
    else
      return poplar::equivalent_device_type<T>().value;
  }
  template <typename T>
  static NodeRef make(T x, const poplar::Type& type, bool fixed) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::kConst;
    node->type = type;
    node->fixed_type = fixed;
    node->is_real = std::is_floating_point_v<T>;
    if constexpr (std::is_floating_point_v<T>)
      node->real = static_cast<double>(x);
    else
      node->integer = static_cast<std::int64_t>(x);
    return node;
  }
};

class ConstHalf : public Const {
 public:
  explicit ConstHalf(float x) : Const(poplar::HALF, x) {}
};

/// The n-th tensor handed to map, from 1.
class PlaceHolder : public Expr {
 public:
  explicit PlaceHolder(unsigned index);
};

inline const PlaceHolder _1(1), _2(2), _3(3), _4(4), _5(5), _6(6), _7(7), _8(8), _9(9), _10(10);

class Cast : public Expr {
 public:
  Cast(const Expr& a, const poplar::Type& type) : Expr(makeOp(Op::kCast, {a.node()}, type)) {}
};

/// The same bits as another type of equal size.
class Bitcast : public Expr {
 public:
  Bitcast(const Expr& a, const poplar::Type& type) : Expr(makeOp(Op::kBitcast, {a.node()}, type)) {}
};

/// Rounds a FLOAT or HALF to fewer exponent and mantissa bits (StableHLO's reduce_precision).
class ReducePrecision : public Expr {
 public:
  ReducePrecision(const Expr& a, int exponentBits, int mantissaBits)
      : Expr(makeOp(Op::kReducePrecision, {a.node()}, {}, exponentBits * 256 + mantissaBits)) {}
};

/// Has no effect: tiles take the random bits of stochastic rounding from their own generators.
class Rounded : public Expr {
 public:
  Rounded(const Expr& a, std::int64_t /*stream*/) : Expr(a) {}
};

// Classes of popops under its names, and those of popx under the row's.
#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE)                                       \
  class Class : public Expr {                                                \
   public:                                                                   \
    explicit Class(const Expr& a) : Expr(makeOp(Op::k##Name, {a.node()})) {} \
  };
#define POPX(Name) POPOPS_EXPR(Name, Name, )
#include "engine/ops/ElementwiseOps.def"

#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE)                                                       \
  class Class : public Expr {                                                                \
   public:                                                                                   \
    Class(const Expr& a, const Expr& b) : Expr(makeOp(Op::k##Name, {a.node(), b.node()})) {} \
  };
#define POPX(Name) POPOPS_EXPR(Name, Name, )
#include "engine/ops/ElementwiseOps.def"

/// Select(ifTrue, ifFalse, predicate), Clamp(value, lowest, highest).
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE)                                 \
  class Class : public Expr {                                          \
   public:                                                             \
    Class(const Expr& a, const Expr& b, const Expr& c)                 \
        : Expr(makeOp(Op::k##Name, {a.node(), b.node(), c.node()})) {} \
  };
#include "engine/ops/ElementwiseOps.def"

#define IPUJAX_OPERATOR(Name, symbol)                                              \
  inline Name operator symbol(const Expr& a, const Expr& b) { return Name(a, b); } \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>         \
  Name operator symbol(const T& a, const Expr& b) {                                \
    return Name(Const(a), b);                                                      \
  }                                                                                \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>         \
  Name operator symbol(const Expr& a, const T& b) {                                \
    return Name(a, Const(b));                                                      \
  }
IPUJAX_OPERATOR(Add, +)
IPUJAX_OPERATOR(BitwiseAnd, &)
IPUJAX_OPERATOR(BitwiseOr, |)
IPUJAX_OPERATOR(BitwiseXor, ^)
IPUJAX_OPERATOR(Divide, /)
IPUJAX_OPERATOR(Equal, ==)
IPUJAX_OPERATOR(Gt, >)
IPUJAX_OPERATOR(Gte, >=)
IPUJAX_OPERATOR(Lt, <)
IPUJAX_OPERATOR(Lte, <=)
IPUJAX_OPERATOR(And, &&)
IPUJAX_OPERATOR(Or, ||)
IPUJAX_OPERATOR(Mul, *)
IPUJAX_OPERATOR(NotEqual, !=)
IPUJAX_OPERATOR(Rem, %)
IPUJAX_OPERATOR(Shl, <<)
IPUJAX_OPERATOR(Shr, >>)
IPUJAX_OPERATOR(Sub, -)
#undef IPUJAX_OPERATOR

inline Neg operator-(const Expr& a) { return Neg(a); }
inline Not operator!(const Expr& a) { return Not(a); }
inline BitwiseNot operator~(const Expr& a) { return BitwiseNot(a); }

}  // namespace popx::expr
