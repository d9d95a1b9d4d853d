#include "popx/hardware/Formulas.hpp"

#include <limits>
#include <string>

#include "poplar/exceptions.hpp"

namespace popx::formulas {
namespace {

using namespace expr;
using poplar::UNSIGNED_INT;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2 = 0.69314718f;

/// c0 + c1 x + c2 x^2 ...
template <class... Rest>
Expr polynomial(const Expr& x, float c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0)
    return Const(c0);
  else
    return polynomial(x, rest...) * x + c0;
}

Const bits(unsigned value) { return {UNSIGNED_INT, value}; }

// Of bits -----------------------------------------------------------------------------------------

/// The bits of a FLOAT rounded to the nearest bfloat16, ties to even. NaNs become quiet ones.
Expr roundedBits(const Expr& x) {
  const Expr all = Bitcast(x, UNSIGNED_INT);
  const Expr last = (all >> bits(16)) & bits(1);
  const Expr rounded = (all + bits(0x7fff) + last) & bits(0xffff0000);
  const Expr nan = (all & bits(0xffff0000)) | bits(0x00400000);
  return Select(nan, rounded, (all & bits(0x7fffffff)) > bits(0x7f800000));
}

/// Bits of an IEEE type with these numbers of mantissa and exponent bits, rounded to fewer: numbers
/// below the new normal range become zero, those above it infinity.
Expr reducedBits(const Expr& original, unsigned mantissa, unsigned exponent, std::int64_t wanted) {
  const auto fewer_exponent = static_cast<unsigned>(wanted / 256);
  const auto fewer_mantissa = static_cast<unsigned>(wanted % 256);
  const unsigned exponent_mask = ((1u << exponent) - 1u) << mantissa;
  const unsigned sign_mask = 1u << (mantissa + exponent);
  const unsigned bias = (1u << (exponent - 1)) - 1u;
  Expr x = original;
  if (fewer_mantissa < mantissa) {
    const unsigned gone = mantissa - fewer_mantissa;
    const unsigned last = 1u << gone;
    const Expr up = bits((last >> 1) - 1u) + ((x >> bits(gone)) & bits(1));
    x = (x + up) & bits(~(last - 1u));
  }
  if (fewer_exponent < exponent) {
    const unsigned fewer_bias = (1u << (fewer_exponent - 1)) - 1u;
    const Expr at = x & bits(exponent_mask);
    const Expr sign = x & bits(sign_mask);
    x = Select(sign | bits(exponent_mask), x, at > bits((bias + fewer_bias) << mantissa));
    x = Select(sign, x, at <= bits((bias - fewer_bias) << mantissa));
  }
  return Select(original, x, (original & bits(sign_mask - 1u)) > bits(exponent_mask));
}

// Of values ---------------------------------------------------------------------------------------

/// exp(x) / 2, which is finite for some x beyond 88 where exp(x) is infinite.
Expr halfExp(const Expr& x) {
  const Expr root = Exp(x * 0.5f);
  return root * (root * 0.5f);
}

Expr acosh(const Expr& x) {
  const Expr t = x - 1.0f;
  const Expr near = Log1p(t + Sqrt(t) * Sqrt(x + 1.0f));
  return Select(Log(x) + kLog2, near, x > 1e15f);
}

Expr asinh(const Expr& x) {
  const Expr a = Abs(x);
  const Expr square = a * a;
  const Expr near = Log1p(a + square / (1.0f + Sqrt(square + 1.0f)));
  return Select(Log(a) + kLog2, near, a > 1e15f) * Signum(x);
}

Expr atanh(const Expr& x) {
  const Expr a = Abs(x);
  return 0.5f * Log1p(2.0f * a / (1.0f - a)) * Signum(x);
}

Expr cosh(const Expr& x) {
  const Expr a = Abs(x);
  const Expr e = Exp(a);
  return Select(halfExp(a), 0.5f * (e + 1.0f / e), a > 88.0f);
}

Expr sinh(const Expr& x) {
  const Expr a = Abs(x);
  const Expr t = Expm1(a);
  return Select(halfExp(a), 0.5f * (t + t / (t + 1.0f)), a > 88.0f) * Signum(x);
}

/// A polynomial in (x - 2.5) / (x + 2.5) times exp(-x^2), whose argument is split so that the
/// larger part is exact. The polynomial: our fit, 2.5e-12 up to 10.6.
Expr erfc(const Expr& x) {
  const Expr a = Min(Abs(x), Const(10.6f));
  const Expr v = (a - 2.5f) / (a + 2.5f);
  const Expr p =
      polynomial(v, 0.21080636406083517f, -0.37173673394039713f, 0.2517131932625505f,
                 -0.1250330529540512f, 0.039922537913784716f, -0.003993690503498019f,
                 -0.0026423527182560754f, 0.0008758306436786042f, 0.00022829261651260402f,
                 -0.00012854089043665108f, -3.383141464264315e-05f, 1.7940213527782567e-05f,
                 6.760660950422453e-06f, -1.7093672816429568e-06f, -9.211826408318726e-07f);
  const Expr wide = a * 4097.0f;
  const Expr high = wide - (wide - a);
  const Expr r = p * Exp((high - a) * (high + a)) * Exp(-(high * high));
  return Select(2.0f - r, r, x < 0.0f);
}

/// Polynomials in -log(1 - x^2), near and far: our fits, 6.8e-11 and 4.5e-11.
Expr erfInv(const Expr& x) {
  const Expr w = -Log((1.0f - x) * (1.0f + x));
  const Expr near =
      polynomial(w - 3.0f, 1.6235420065140862f, 0.24163040371224323f, -0.005738135821919064f,
                 -0.0008361801684781023f, 0.00019506247074759834f, -1.2718089836895973e-05f,
                 -1.748797064775375e-06f, 4.507559282503835e-07f, -2.3434245541835097e-08f,
                 -5.65240251523086e-09f, 1.0710089643730288e-09f, -7.103012618459814e-12f,
                 -1.466021500255677e-11f, 1.0068362261698558e-12f);
  const Expr far =
      polynomial(Sqrt(w) - 3.2f, 3.0336365742916116f, 1.0046924428304171f, 0.005973183040660535f,
                 -0.004294200629565471f, 0.0029505737194805083f, -0.0019925986102866003f,
                 0.0010800734447523066f, -0.0003600060973601738f, -1.6980162796936766e-05f,
                 9.979845489946041e-05f, -4.758195812698667e-05f, 1.1241703096989038e-06f,
                 3.967554306460011e-06f);
  return Select(x * kInfinity, x * Select(near, far, w < 5.95f), Abs(x) == 1.0f);
}

/// For x in [0.5, 2.5]: its two zeros times a polynomial, our fit, 2.4e-8.
Expr logGammaBetweenZeros(const Expr& x) {
  const Expr p = polynomial(
      x - 1.5f, 0.48312894029151165f, -0.1459598338134664f, 0.06291267325343616f,
      -0.031311373969177915f, 0.016771395589446694f, -0.00938681103290602f, 0.005642024054653673f,
      -0.003443586817566094f, 0.0012051768806674813f, -0.00044559767795183914f,
      0.0020988902304813007f, -0.0016644530068624299f, -0.0011274700665613847f,
      0.0009505286482318434f, 0.0007335653541881966f, -0.0005269158027133512f);
  return (x - 1.0f) * (x - 2.0f) * p;
}

/// For x > 0: the recurrence lowers x to [1.5, 2.5], or raises it from below 0.5; Stirling's series
/// beyond 8.
Expr logGammaOfPositive(const Expr& x) {
  Expr rest = Max(Min(x, Const(8.0f)), Const(0.5f));
  Expr product = Const(1.0f);
  for (int i = 0; i < 6; ++i) {
    const Expr less = rest - 1.0f;
    product = Select(product * less, product, rest > 2.5f);
    rest = Select(less, rest, rest > 2.5f);
  }
  const Expr middle = Log(product) + logGammaBetweenZeros(rest);
  const Expr below = logGammaBetweenZeros(x + 1.0f) - Log(x);
  const Expr inverse = 1.0f / x;
  const Expr series =
      inverse * polynomial(inverse * inverse, 0.083333333f, -0.0027777778f, 0.00079365079f);
  const Expr far = (x - 0.5f) * (Log(x) - 1.0f) + (0.41893853f + series);
  return Select(below, Select(far, middle, x > 8.0f), x < 0.5f);
}

/// Uses reflection below zero.
Expr logGamma(const Expr& x) {
  const Expr a = Abs(x);
  const Expr over = a - Floor(a);
  const Expr sine = Sin(3.1415927f * Min(over, 1.0f - over));
  const Expr reflected = 1.1447299f - Log(sine) - logGammaOfPositive(1.0f + a);
  const Expr below = Select(Const(kInfinity), reflected, over == 0.0f);
  return Select(a, Select(below, logGammaOfPositive(x), x < 0.0f), IsInf(x));
}

/// (1 + tanh(u)) / 2 of GELU's cubic u.
Expr geluShare(const Expr& x) {
  return Sigmoid(2.0f * (0.7978846f * (x + 0.044715f * (x * x * x))));
}

Expr geluGradient(const Expr& x, const Expr& g) {
  const Expr s = geluShare(x);
  const Expr slope = 1.5957691f * (1.0f + 0.134145f * (x * x));
  return g * (s + x * (s * (1.0f - s)) * slope);
}

Expr geluErfGradient(const Expr& x, const Expr& g) {
  const Expr a = Min(Max(x, Const(-14.5f)), Const(14.5f));  // the density is 0 beyond
  const Expr density = 0.3989423f * Exp(-0.5f * (a * a));
  return g * (0.5f * erfc(x * -0.70710678f) + a * density);
}

}  // namespace

bool isOfBits(Op op) {
  return op == Op::kFromBFloat16 || op == Op::kToBFloat16 || op == Op::kRoundToBFloat16 ||
         op == Op::kReducePrecision;
}

bool has(Op op) {
  switch (op) {
#define UNARY(Name, name, traits, api, ...) api
#define BINARY(Name, name, traits, api, ...) api
#define POPX(Name) case Op::k##Name:
#include "engine/ops/ElementwiseOps.def"
    case Op::kReducePrecision:
      return true;
    default:
      return false;
  }
}

Expr ofBits(const Node& node, const Expr& a, const poplar::Type& type) {
  switch (node.op) {
    case Op::kFromBFloat16:
      return Bitcast(Cast(a, UNSIGNED_INT) << bits(16), poplar::FLOAT);
    case Op::kToBFloat16:
      return Cast(roundedBits(a) >> bits(16), poplar::UNSIGNED_SHORT);
    case Op::kRoundToBFloat16:
      return Bitcast(roundedBits(a), poplar::FLOAT);
    default:
      break;
  }
  if (type == poplar::FLOAT)
    return Bitcast(reducedBits(Bitcast(a, UNSIGNED_INT), 23, 8, node.immediate), poplar::FLOAT);
  if (type != poplar::HALF)
    throw poplar::poplar_error("[popx::expr::ReducePrecision] needs a FLOAT or HALF; got " +
                               type.toString() + ". Cast it.");
  const Expr half = Cast(Bitcast(a, poplar::UNSIGNED_SHORT), UNSIGNED_INT);
  return Bitcast(Cast(reducedBits(half, 10, 5, node.immediate), poplar::UNSIGNED_SHORT),
                 poplar::HALF);
}

Expr ofFloats(Op op, const Expr& a, const Expr& b) {
  switch (op) {
    case Op::kAcos:
      return 2.0f * Atan2(Sqrt(1.0f - a), Sqrt(1.0f + a));
    case Op::kAcosh:
      return acosh(a);
    case Op::kAsinh:
      return asinh(a);
    case Op::kAtan:
      return Atan2(a, Const(1.0f));
    case Op::kAtanh:
      return atanh(a);
    case Op::kCosh:
      return cosh(a);
    case Op::kErfc:
      return erfc(a);
    case Op::kErfInv:
      return erfInv(a);
    case Op::kGelu:
      return a * geluShare(a);
    case Op::kGeluGradient:
      return geluGradient(a, b);
    case Op::kGeluErfGradient:
      return geluErfGradient(a, b);
    case Op::kLogGamma:
      return logGamma(a);
    case Op::kSinh:
      return sinh(a);
    default:
      throw poplar::poplar_error(
          "[popx::formulas] needs an operation that popops lacks; got one that it has. Use it.");
  }
}

}  // namespace popx::formulas
