#pragma once
/// The expressions that popx's functions take: those of popops and ones that it lacks. On hardware
/// popx::map expresses the latter by operations of popops and reinterpreted tensors.
#ifdef IPUJAX_PUBLIC_NAMES
#include "popx/hardware/Expr.hpp"
#else
#include "popops/Expr.hpp"

namespace popx::expr {

using namespace popops::expr;  // NOLINT: under one name in both builds

#define UNARY(Name, name, traits, api, ...) api
#define POPX(Name)                                                                     \
  class Name : public Expr {                                                           \
   public:                                                                             \
    explicit Name(const Expr& a)                                                       \
        : Expr(popops::expr::makeOp(ipujax::engine::expr::Op::k##Name, {a.node()})) {} \
  };
#include "engine/ops/ElementwiseOps.def"

#define BINARY(Name, name, traits, api, ...) api
#define POPX(Name)                                                                               \
  class Name : public Expr {                                                                     \
   public:                                                                                       \
    Name(const Expr& a, const Expr& b)                                                           \
        : Expr(popops::expr::makeOp(ipujax::engine::expr::Op::k##Name, {a.node(), b.node()})) {} \
  };
#include "engine/ops/ElementwiseOps.def"

/// The same bits as another type of equal size.
class Bitcast : public Expr {
 public:
  Bitcast(const Expr& a, poplar::Type type)
      : Expr(popops::expr::makeOp(ipujax::engine::expr::Op::kBitcast, {a.node()}, type)) {}
};

/// Rounds a FLOAT or HALF to fewer exponent and mantissa bits (StableHLO's reduce_precision).
class ReducePrecision : public Expr {
 public:
  ReducePrecision(const Expr& a, int exponentBits, int mantissaBits)
      : Expr(popops::expr::makeOp(ipujax::engine::expr::Op::kReducePrecision, {a.node()}, {},
                                  exponentBits * 256 + mantissaBits)) {}
};

/// The same, but stochastic rounding to HALF takes its bits from a stream, a nonzero number.
/// Operations of one stream round equal values alike, wherever they are computed.
class Rounded : public Expr {
 public:
  Rounded(const Expr& a, std::int64_t stream) : Expr(with(a.node(), stream)) {}

 private:
  static NodeRef with(const NodeRef& node, std::int64_t stream) {
    if (node->kind != Node::Kind::kOp) return node;
    auto made = std::make_shared<Node>();
    made->op = node->op;
    made->type = node->type;
    made->immediate = node->immediate;
    made->args = node->args;
    made->stream = stream;
    return made;
  }
};

}  // namespace popx::expr
#endif
