#pragma once
#include "popops/Expr.hpp"

/// Expressions that popops lacks. On hardware each is a fused codelet around the same C functions
/// (or a few instructions) that a popops::map would generate code for.
namespace popx::expr {

using popops::expr::Expr;

#define IPUJAX_POPX_UNARY(Name, kOp)                                               \
  class Name : public Expr {                                                       \
   public:                                                                         \
    explicit Name(const Expr& a)                                                   \
        : Expr(popops::expr::makeOp(ipujax::engine::expr::Op::kOp, {a.node()})) {} \
  };
IPUJAX_POPX_UNARY(Acos, kAcos)
IPUJAX_POPX_UNARY(Acosh, kAcosh)
IPUJAX_POPX_UNARY(Asinh, kAsinh)
IPUJAX_POPX_UNARY(Atan, kAtan)
IPUJAX_POPX_UNARY(Atanh, kAtanh)
IPUJAX_POPX_UNARY(Cosh, kCosh)
IPUJAX_POPX_UNARY(Erfc, kErfc)
IPUJAX_POPX_UNARY(ErfInv, kErfInv)
IPUJAX_POPX_UNARY(LogGamma, kLogGamma)
IPUJAX_POPX_UNARY(Sinh, kSinh)
/// UNSIGNED_SHORT bits of a bfloat16 to FLOAT.
IPUJAX_POPX_UNARY(FromBFloat16, kFromBFloat16)
/// FLOAT to the UNSIGNED_SHORT bits of a bfloat16, to nearest even.
IPUJAX_POPX_UNARY(ToBFloat16, kToBFloat16)
/// FLOAT to FLOAT, rounded to bfloat16 precision, to nearest even.
IPUJAX_POPX_UNARY(RoundToBFloat16, kRoundToBFloat16)
#undef IPUJAX_POPX_UNARY

/// The names the brief of the dialect uses, for what popops calls Round and NearbyInt.
using RoundNearestAfz = popops::expr::Round;
using RoundNearestEven = popops::expr::NearbyInt;

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

}  // namespace popx::expr
