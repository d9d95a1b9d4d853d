#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/ops/ExprOp.hpp"
#include "poplar/Type.hpp"
#include "poplar/TypeTraits.hpp"
#include "popops/ExprOp.hpp"

/// Expressions over the elements of tensors, applied with popops::map:
/// `map(graph, Tanh(_1 * 2.0f + _2), {a, b}, prog)`.
namespace popops::expr {

/// A node of an expression. Immutable and shared: an expression used twice is one node, so a graph
/// of expressions never grows into a tree.
struct Node {
  enum class Kind : std::uint8_t { kPlaceHolder, kConst, kOp };
  Kind kind = Kind::kOp;
  ipujax::engine::expr::Op op = ipujax::engine::expr::Op::kConstant;
  poplar::Type type;           ///< constant: its type; cast or bitcast: the result's type
  std::int64_t immediate = 0;  ///< placeholder: its index from 1; reduce precision: its bits
  bool is_real = false;        ///< constant: its value is `real`, else `integer`
  bool fixed_type = false;     ///< constant: never takes another operand's type
  std::int64_t stream = 0;     ///< operation: see popx::expr::Rounded
  double real = 0;
  std::int64_t integer = 0;
  poplar::TypeTraits host;  ///< constant: type of the host value it was made from
  std::vector<std::shared_ptr<const Node>> args;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  ///< frees deep expressions without recursion
};
using NodeRef = std::shared_ptr<const Node>;

/// Base of all expressions; a handle, cheap to copy. Copies are independent: assigning to an
/// operand of one (through getArg and the like) does not change the others.
class Expr {
 public:
  virtual ~Expr() = default;
  Expr(const Expr& other) : node_(other.node()) {}
  Expr& operator=(const Expr& other) {
    const NodeRef node = other.node();
    operands_.clear();
    node_ = node;
    return *this;
  }
  /// A copy of its node's class: PlaceHolder, Const, Cast, UnaryOp, BinaryOp or TernaryOp.
  std::unique_ptr<Expr> clone() const;
  bool deepEquals(const Expr& other) const;
  std::string toString() const;
  /// With `prettyPrint`, each operand on a line of its own.
  void print(std::ostream& os, unsigned indent = 0, bool prettyPrint = true) const;
  /// Whether the expression is a T, whatever the handle's class.
  template <class T>
  bool isA() const {
    return T::isClassOf(*node());
  }
  /// Null if the expression is not a T, or the handle is of another class.
  template <class T>
  T* getAs() {
    return isA<T>() ? dynamic_cast<T*>(this) : nullptr;
  }
  template <class T>
  const T* getAs() const {
    return isA<T>() ? dynamic_cast<const T*>(this) : nullptr;
  }

  /// For the library.
  explicit Expr(NodeRef node) : node_(std::move(node)) {}
  const NodeRef& node() const {
    if (!operands_.empty()) takeOperands();
    return node_;
  }

 protected:
  /// The i-th operand; valid until this handle or its node is replaced.
  const Expr& operand(std::size_t i) const;

 private:
  /// Rebuilds the node if an operand that was handed out has been assigned to.
  void takeOperands() const;

  mutable NodeRef node_;
  mutable std::vector<std::unique_ptr<Expr>> operands_;  ///< made by operand()
};
inline bool deepEquals(const Expr& a, const Expr& b) { return a.deepEquals(b); }
inline std::ostream& operator<<(std::ostream& os, const Expr& expr) {
  expr.print(os);
  return os;
}

/// Holds any expression, for building dynamically where the outermost class may change.
class Any {
 public:
  Any(const Expr& expr) : expr_(expr.clone()) {}  // NOLINT: implicit as in the SDK
  Any(const Any& other) : expr_(other.expr_->clone()) {}
  Any& operator=(const Any& other) {
    expr_ = other.expr_->clone();
    return *this;
  }
  operator Expr&() { return *expr_; }              // NOLINT: implicit as in the SDK
  operator const Expr&() const { return *expr_; }  // NOLINT: implicit as in the SDK
  template <class T>
  bool isA() const {
    return expr_->isA<T>();
  }

  /// For the library.
  const NodeRef& node() const { return expr_->node(); }

 private:
  std::unique_ptr<Expr> expr_;
};

/// For the library: applies an operation of the engine to operands.
NodeRef makeOp(ipujax::engine::expr::Op op, std::vector<NodeRef> args, poplar::Type type = {},
               std::int64_t immediate = 0);

/// A constant. Next to an operand of another type its value is converted to that type.
class Const : public Expr {
 public:
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Const(T x) : Expr(make(x, typeOf<T>())) {}  // NOLINT: implicit as in the SDK
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Const(poplar::Type type, T x) : Expr(make(x, type, true)) {}
  /// A constant of `type` from one host value. Throws poplibs_error unless `host` is a number.
  Const(const poplar::TypeTraits& host, poplar::Type type, const char* data);
  explicit Const(NodeRef node) : Expr(std::move(node)) {}  ///< for the library

  const poplar::Type& getType() const { return node()->type; }
  /// The host value it was made from; the bytes live as long as this handle.
  char* getData() const;
  const poplar::TypeTraits& getTypeTraits() const { return node()->host; }
  double getDataAsDouble() const {
    return node()->is_real ? node()->real : static_cast<double>(node()->integer);
  }
  /// Throws poplibs_error for a floating-point constant.
  std::uint64_t getDataForUnsignedIntegral() const;
  /// The value, with enough digits to recover a float exactly.
  std::string printValue() const;
  static bool isClassOf(const Node& node) { return node.kind == Node::Kind::kConst; }

 private:
  template <typename T>
  static poplar::Type typeOf() {
    if constexpr (std::is_floating_point_v<T>)
      return poplar::FLOAT;
    else
      return poplar::equivalent_device_type<T>::value;
  }
  template <typename T>
  static NodeRef make(T x, poplar::Type type, bool fixed = false) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::kConst;
    node->type = type;
    node->fixed_type = fixed;
    node->is_real = std::is_floating_point_v<T>;
    using Host = std::conditional_t<std::is_same_v<T, long double>, double, T>;
    node->host = poplar::TypeTraits::make<Host>();
    if constexpr (std::is_floating_point_v<T>)
      node->real = static_cast<double>(x);
    else
      node->integer = static_cast<std::int64_t>(x);
    return node;
  }

  mutable std::array<char, 8> data_{};
};

class ConstHalf : public Const {
 public:
  ConstHalf(float x) : Const(poplar::HALF, x) {}
};
inline ConstHalf operator""_half(long double x) { return ConstHalf(static_cast<float>(x)); }

/// The n-th tensor handed to map, from 1.
class PlaceHolder : public Expr {
 public:
  PlaceHolder(unsigned index);
  explicit PlaceHolder(NodeRef node) : Expr(std::move(node)) {}  ///< for the library
  unsigned getIndex() const { return static_cast<unsigned>(node()->immediate); }
  static bool isClassOf(const Node& node) { return node.kind == Node::Kind::kPlaceHolder; }
};

inline const PlaceHolder _1(1), _2(2), _3(3), _4(4), _5(5), _6(6), _7(7), _8(8), _9(9), _10(10),
    _11(11), _12(12), _13(13), _14(14), _15(15), _16(16), _17(17), _18(18), _19(19), _20(20);

class Cast : public Expr {
 public:
  Cast(const Expr& a, poplar::Type type);
  explicit Cast(NodeRef node) : Expr(std::move(node)) {}  ///< for the library
  const Expr& getLHS() const { return operand(0); }
  const poplar::Type& getRHSType() const { return node()->type; }
  static bool isClassOf(const Node& node);
};

class UnaryOp : public Expr {
 public:
  UnaryOp(UnaryOpType type, const Expr& a);
  explicit UnaryOp(NodeRef node) : Expr(std::move(node)) {}  ///< for the library
  UnaryOpType getOpType() const { return static_cast<UnaryOpType>(node()->op); }
  const Expr& getArg() const { return operand(0); }
  static bool isClassOf(const Node& node);

 protected:
  static bool isOp(const Node& node, UnaryOpType type) {
    return isClassOf(node) && static_cast<UnaryOpType>(node.op) == type;
  }
};
class BinaryOp : public Expr {
 public:
  BinaryOp(BinaryOpType type, const Expr& a, const Expr& b);
  explicit BinaryOp(NodeRef node) : Expr(std::move(node)) {}  ///< for the library
  BinaryOpType getOpType() const { return static_cast<BinaryOpType>(node()->op); }
  const Expr& getLHS() const { return operand(0); }
  const Expr& getRHS() const { return operand(1); }
  static bool isClassOf(const Node& node);

 protected:
  static bool isOp(const Node& node, BinaryOpType type) {
    return isClassOf(node) && static_cast<BinaryOpType>(node.op) == type;
  }
};
class TernaryOp : public Expr {
 public:
  TernaryOp(TernaryOpType type, const Expr& a, const Expr& b, const Expr& c);
  explicit TernaryOp(NodeRef node) : Expr(std::move(node)) {}  ///< for the library
  TernaryOpType getOpType() const { return static_cast<TernaryOpType>(node()->op); }
  const Expr& getArg0() const { return operand(0); }
  const Expr& getArg1() const { return operand(1); }
  const Expr& getArg2() const { return operand(2); }
  static bool isClassOf(const Node& node);

 protected:
  static bool isOp(const Node& node, TernaryOpType type) {
    return isClassOf(node) && static_cast<TernaryOpType>(node.op) == type;
  }
};

#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE)                                                \
  class Class : public UnaryOp {                                                      \
   public:                                                                            \
    Class(const Expr& a) : UnaryOp(UnaryOpType::TYPE, a) {}                           \
    static bool isClassOf(const Node& node) { return isOp(node, UnaryOpType::TYPE); } \
  };
#include "engine/ops/ElementwiseOps.def"

#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE)                                                 \
  class Class : public BinaryOp {                                                      \
   public:                                                                             \
    Class(const Expr& a, const Expr& b) : BinaryOp(BinaryOpType::TYPE, a, b) {}        \
    static bool isClassOf(const Node& node) { return isOp(node, BinaryOpType::TYPE); } \
  };
#include "engine/ops/ElementwiseOps.def"

/// Select(ifTrue, ifFalse, predicate), Clamp(value, lowest, highest).
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE)                                                  \
  class Class : public TernaryOp {                                                      \
   public:                                                                              \
    Class(const Expr& a, const Expr& b, const Expr& c)                                  \
        : TernaryOp(TernaryOpType::TYPE, a, b, c) {}                                    \
    static bool isClassOf(const Node& node) { return isOp(node, TernaryOpType::TYPE); } \
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

}  // namespace popops::expr
