#include <cmath>
#include <random>

#include "Twins.hpp"
#include "popx/Expr.hpp"
#include "popx/Map.hpp"

// Expressions that popops lacks, and those that popx::map must take apart.

namespace TWINS {

namespace {

namespace pe = popx::expr;
using poplar::Graph;
using poplar::program::Sequence;
using Tensors = Twin::Tensors;

/// Values within a range, and the extreme values of FLOAT.
Twin::Value reals(float least, float most, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> any(least, most);
  std::vector<float> values = {NAN,    -0.0f,  0.0f,   INFINITY, -INFINITY, 1.0f,  -1.0f,
                               1e-38f, 1e-42f, -1e-3f, 3e38f,    -3e38f,    2.0f,  0.5f,
                               88.8f,  -89.2f, 10.5f,  -10.7f,   1e18f,     -0.3f, 3.0f};
  while (values.size() < 4000) values.push_back(any(engine));
  return valueOf(poplar::FLOAT, {values.size()}, values);
}

/// Random bits of a type whose elements have `size` bytes; NaNs are quiet, as from arithmetic.
Twin::Value anyBits(poplar::Type type, std::size_t size) {
  std::mt19937 engine(5);
  std::vector<std::byte> bytes(4000 * size);
  for (auto& b : bytes) b = static_cast<std::byte>(engine());
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    if (type == poplar::FLOAT && (bytes[i + 3] & std::byte{0x7f}) == std::byte{0x7f})
      bytes[i + 2] |= std::byte{0x40};
    if (type == poplar::HALF && (bytes[i + 1] & std::byte{0x7c}) == std::byte{0x7c})
      bytes[i + 1] |= std::byte{0x02};
  }
  return {type, {4000}, std::move(bytes)};
}

Twin mapped(const std::string& name, const std::vector<Twin::Value>& inputs,
            const std::vector<pe::Expr>& exprs, unsigned ulps = 0, double least = 0) {
  Twin twin{name, inputs,
            [=](Graph& g, const Tensors& in, Sequence& p) { return popx::map(g, exprs, in, p); }};
  twin.ulps = ulps;
  twin.least = least;
  return twin;
}

void addFunction(std::vector<Twin>& twins, const std::string& name, const Twin::Value& x,
                 const pe::Expr& e, unsigned ulps, double least = 0) {
  twins.push_back(mapped(name, {x, reals(-3, 3, 2)}, {e}, ulps, least));
}

void addBits(std::vector<Twin>& twins) {
  const auto floats = anyBits(poplar::FLOAT, 4), halves = anyBits(poplar::HALF, 2);
  twins.push_back(mapped("to bfloat16", {floats}, {pe::ToBFloat16(pe::_1)}));
  twins.push_back(mapped("from bfloat16", {anyBits(poplar::UNSIGNED_SHORT, 2)},
                         {pe::Mul(pe::FromBFloat16(pe::_1), pe::Const(1.0f))}));
  twins.push_back(mapped("round to bfloat16", {floats},
                         {pe::RoundToBFloat16(pe::_1), pe::RoundToBFloat16(pe::_1 * 3.0f)}));
  for (const auto& [exponent, mantissa] : {std::pair(8, 7), {5, 10}, {4, 3}, {8, 23}, {1, 0}}) {
    const std::string name =
        "reduce to " + std::to_string(exponent) + ", " + std::to_string(mantissa);
    twins.push_back(mapped(name, {floats}, {pe::ReducePrecision(pe::_1, exponent, mantissa)}));
    twins.push_back(
        mapped(name + " of halves", {halves}, {pe::ReducePrecision(pe::_1, exponent, mantissa)}));
  }
  const auto sign = [](const pe::Expr& x, poplar::Type type, int shift) {
    const pe::Expr bits = pe::Bitcast(x, type);
    return bits ^ (pe::ShrSE(bits, pe::Const(type, shift)) & pe::Const(type, (1ll << shift) - 1));
  };
  twins.push_back(mapped("total order", {floats, anyBits(poplar::FLOAT, 4)},
                         {sign(pe::_1, poplar::INT, 31) < sign(pe::_2 + 0.5f, poplar::INT, 31)}));
  twins.push_back(mapped("total order of halves", {halves}, {sign(pe::_1, poplar::SHORT, 15)}));
  twins.push_back(mapped(
      "bitcasts of bitcasts", {floats},
      {pe::Bitcast(pe::Bitcast(pe::_1, poplar::INT), poplar::UNSIGNED_INT),
       pe::Bitcast(pe::Const(poplar::FLOAT, 1.5), poplar::INT) + pe::Bitcast(pe::_1, poplar::INT),
       pe::Bitcast(pe::Cast(pe::_1 > 0.0f, poplar::INT) + 7, poplar::FLOAT)}));
}

}  // namespace

std::vector<Twin> bitOperations() {
  std::vector<Twin> twins;
  addBits(twins);
  return twins;
}

/// The fast build computes most functions in double. Bounds are twice the observed units in the
/// last place.
std::vector<Twin> functions() {
  std::vector<Twin> twins;
  const auto& x = pe::_1;
  addFunction(twins, "acos", reals(-1, 1), pe::Acos(x), 4);
  addFunction(twins, "acosh", reals(1, 50), pe::Acosh(x), 2);
  addFunction(twins, "asinh", reals(-30, 30), pe::Asinh(x), 2);
  addFunction(twins, "atan", reals(-9, 9), pe::Atan(x), 0);
  addFunction(twins, "atanh", reals(-1, 1), pe::Atanh(x), 4);
  addFunction(twins, "cosh", reals(-90, 90), pe::Cosh(x), 2);
  addFunction(twins, "sinh", reals(-90, 90), pe::Sinh(x), 2);
  addFunction(twins, "erfc", reals(-4, 11), pe::Erfc(x), 12);
  addFunction(twins, "erf_inv", reals(-1, 1), pe::ErfInv(x), 6);
  addFunction(twins, "log_gamma", reals(0, 40), pe::LogGamma(x), 6);
  // Near its zeros below 0 the reflection cancels, so errors are relative to a result of 1.
  addFunction(twins, "log_gamma below zero", reals(-20, 0), pe::LogGamma(x), 14, 1);
  addFunction(twins, "gelu", reals(-6, 6), pe::Gelu(x), 2);
  addFunction(twins, "gelu_gradient", reals(-6, 6), pe::GeluGradient(x, pe::_2), 2);
  addFunction(twins, "gelu_erf_gradient", reals(-6, 6), pe::GeluErfGradient(x, pe::_2), 32, 1);
  return twins;
}

std::vector<Twin> functionsOfHalves() {
  std::vector<Twin> twins;
  const auto half = [&](const std::string& name, const pe::Expr& e, unsigned ulps) {
    twins.push_back(mapped(name + " of halves", {anyBits(poplar::HALF, 2)}, {e}, ulps));
  };
  half("acos", pe::Acos(pe::_1), 1);
  half("cosh", pe::Cosh(pe::_1), 1);
  half("gelu", pe::Gelu(pe::_1), 1);
  half("gelu_gradient", pe::GeluGradient(pe::_1, pe::Const(2.0f)), 1);
  return twins;
}

/// Results that share parts, are operands or constants, or are smaller than all operands together.
std::vector<Twin> sharedParts() {
  const auto a = valueOf<float>(poplar::FLOAT, {3, 1}, {1.5f, -2, 3});
  const auto b = valueOf<float>(poplar::FLOAT, {4}, {0.25f, 1, -1, 7});
  const pe::Expr sum = pe::_1 + pe::_2;
  const pe::Expr part = pe::Exp(pe::Sin(sum) * sum + pe::Cos(sum) - pe::_1 / (1.0f + sum * sum));
  pe::Expr chain = pe::_1;
  for (int i = 0; i < 60; ++i) chain = chain * chain + 0.1f - chain;
  pe::Expr longer = pe::_2;
  for (int i = 0; i < 700; ++i) longer = longer * 0.5f + 1.0f;
  return {mapped("shared parts", {a, b}, {part + part, part * sum, part, part}),
          mapped("operands and constants", {a, b},
                 {pe::_1, pe::_2, pe::Const(2.5f), pe::Const(poplar::INT, 3) + pe::Const(4),
                  pe::Select(pe::Const(1), pe::Const(-1), pe::_1 > pe::Const(0))}),
          mapped("a chain of squares", {a}, {chain}),
          mapped("a long expression", {a, b}, {longer})};
}

}  // namespace TWINS
