#include "popfloat/internal/GfloatSteps.hpp"

#include <limits>

#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"

namespace popfloat {
namespace experimental {
namespace internal {
namespace {

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
using popops::expr::_1;
using popops::expr::_2;
using popops::expr::Const;
using popops::expr::Expr;
using poputil::poplibs_error;
namespace expr = popops::expr;

/// 2^floor(log2|x|) of FLOAT x; 0 for subnormal x, infinity if x is not finite.
Tensor powerBelow(Graph& graph, const Tensor& x, Sequence& prog) {
  const Tensor bits = x.reinterpret(poplar::INT);
  return popops::map(graph, _1 & Const(0x7f800000), {bits}, prog).reinterpret(poplar::FLOAT);
}

Expr rounded(const Expr& x, RoundType mode) {
  switch (mode) {
    case RoundType::RZ:
      return expr::Trunc(x);
    case RoundType::RN:
      return expr::NearbyInt(x);
    case RoundType::RA:
      return expr::Round(x);
    case RoundType::RU:
      return expr::Ceil(x);
    case RoundType::RD:
      return expr::Floor(x);
    default:
      throw poplibs_error("[GfloatCast] needs a rounding mode that is not at random; got " +
                          roundTypeToString(mode) + ", for which the model has no noise. Use RZ, " +
                          "RN, RA, RU or RD.");
  }
}

}  // namespace

Tensor quantise(Graph& graph, const Tensor& x, const Format& f,
                const GfloatCast::CastConfig& config, Sequence& prog) {
  const Tensor power = powerBelow(graph, x, prog);
  const Expr unit = expr::Max(_2, Const(f.smallestNormal()));
  Expr q = rounded(_1 / unit * Const(f.unit()), config.getRoundMode()) * Const(1 / f.unit()) * unit;
  if (!f.denorms)
    q = expr::Select(q, Const(0.0f), expr::Gte(expr::Abs(q), Const(f.smallestNormal())));
  const Expr beyond = config.isNanooModeEnabled()
                          ? Expr(Const(std::numeric_limits<float>::quiet_NaN()))
                          : Expr(expr::Signum(_1) * Const(f.largest()));
  const Expr clipped = expr::Select(beyond, q, expr::Gt(expr::Abs(q), Const(f.largest())));
  return popops::map(graph, expr::Select(clipped, _1, expr::IsFinite(_1)), {x, power}, prog);
}

Tensor pack(Graph& graph, const Tensor& q, const Format& f, const poplar::Type& type,
            Sequence& prog) {
  const Tensor power = powerBelow(graph, q, prog);
  const Expr unit = expr::Max(_2, Const(f.smallestNormal()));
  const Tensor significand = popops::map(
      graph, expr::Cast(expr::Abs(_1) / unit * Const(f.unit()), poplar::INT), {q, power}, prog);
  // The leading bit of a significand adds the missing 1 to the exponent of a normal value.
  const Tensor exponent = power.reinterpret(poplar::INT);
  const Expr above = expr::Max((_1 >> Const(23)) + Const(f.bias - 127), Const(1)) - Const(1);
  const Tensor finite =
      popops::map(graph, (above << Const(f.mantissa)) + _2, {exponent, significand}, prog);
  const int ones = ((1 << f.exponent) - 1) << f.mantissa;
  const Expr special =
      expr::Select(Const(ones | 1 << (f.mantissa - 1)), Const(ones), expr::IsNaN(_1));
  const Tensor magnitude =
      popops::map(graph, expr::Select(_2, special, expr::IsFinite(_1)), {q, finite}, prog);
  const Expr sign = expr::Select(Const(1 << (f.exponent + f.mantissa)), Const(0), _1 < Const(0));
  return popops::map(graph, expr::Cast(_2 - sign, type), {q.reinterpret(poplar::INT), magnitude},
                     prog);
}

Tensor unpack(Graph& graph, const Tensor& packed, const Format& f, Sequence& prog) {
  const Tensor v = popops::cast(graph, packed, poplar::INT, prog);
  const Expr magnitude = _1 & Const((1 << (f.exponent + f.mantissa)) - 1);
  const Expr exponent = magnitude >> Const(f.mantissa);
  const Expr fraction = magnitude & Const((1 << f.mantissa) - 1);
  const Expr is_low = expr::Equal(exponent, Const(0));
  const Tensor power =
      popops::map(graph, (expr::Max(exponent, Const(1)) + Const(127 - f.bias)) << Const(23), {v},
                  prog)
          .reinterpret(poplar::FLOAT);
  const Expr low = f.denorms ? fraction : Expr(Const(0));
  Expr value =
      expr::Cast(expr::Select(low, fraction + Const(1 << f.mantissa), is_low), poplar::FLOAT) *
      Const(1 / f.unit()) * _2;
  if (f.infs) {
    const Expr special = expr::Select(Const(std::numeric_limits<float>::infinity()),
                                      Const(std::numeric_limits<float>::quiet_NaN()),
                                      expr::Equal(fraction, Const(0)));
    value = expr::Select(special, value, expr::Equal(exponent, Const((1 << f.exponent) - 1)));
  }
  return popops::map(graph, expr::Select(-value, value, _1 < Const(0)), {v, power}, prog);
}

}  // namespace internal
}  // namespace experimental
}  // namespace popfloat
