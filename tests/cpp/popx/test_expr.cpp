#include <cmath>
#include <cstring>
#include <vector>

#include "Check.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popx/Expr.hpp"

/// The expressions that popops lacks.
namespace {
using ipujax::engine::sizeOf;
using ipujax::engine::expr::ExprEvaluator;
using ipujax::engine::expr::ExprProgram;
using Bytes = std::vector<std::byte>;

Bytes run(const ExprProgram& p, const Bytes& input, std::size_t n, std::size_t output) {
  std::vector<Bytes> results;
  for (const auto type : p.outputTypes()) results.emplace_back(n * sizeOf(type));
  std::vector<std::byte*> out;
  for (auto& result : results) out.push_back(result.data());
  const std::vector<const std::byte*> in = {input.data()};
  ExprEvaluator(p).run(in, out, static_cast<std::int64_t>(n));
  return results[output];
}
/// Compares floats; NaNs are equal whatever their bits are.
bool areEqual(const Bytes& a, const Bytes& b) {
  for (std::size_t at = 0; at < a.size(); at += 4) {
    float x = 0;
    float y = 0;
    std::memcpy(&x, &a[at], 4);
    std::memcpy(&y, &b[at], 4);
    if (std::memcmp(&x, &y, 4) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}
}  // namespace

TEST(bfloat16_and_reduced_precision_round_to_nearest_even) {
  const float values[] = {1.0f, 1.00390625f, 1.01171875f, 3.39e38f, -0.0f, 1e-40f, NAN, INFINITY};
  Bytes in(sizeof(values));
  std::memcpy(in.data(), values, sizeof(values));
  const auto p = popops::internal::compileExpr(
      {popx::expr::RoundToBFloat16(popops::expr::_1), popx::expr::ToBFloat16(popops::expr::_1),
       popx::expr::FromBFloat16(popx::expr::ToBFloat16(popops::expr::_1)),
       popx::expr::ReducePrecision(popops::expr::_1, 8, 7),
       popx::expr::ReducePrecision(popops::expr::_1, 5, 10)},
      {poplar::FLOAT});
  const std::size_t n = std::size(values);
  const float want[] = {1.0f, 1.0f, 1.015625f, 3.39e38f, -0.0f, 1e-40f, NAN, INFINITY};
  const Bytes rounded = run(p, in, n, 0);
  const Bytes there_and_back = run(p, in, n, 2);
  const Bytes reduced = run(p, in, n, 3);
  CHECK(areEqual(rounded, there_and_back));
  CHECK(areEqual(rounded, reduced));
  for (std::size_t k = 0; k < n; ++k) {
    float v = 0;
    std::memcpy(&v, &rounded[4 * k], 4);
    CHECK_NEAR(v, want[k], std::abs(want[k]) * 0.004 + 1e-41);
  }
  const Bytes half = run(p, in, n, 4);  // the exponents of half: overflow to infinity, 1e-40 to 0
  float v[8];
  std::memcpy(v, half.data(), sizeof(v));
  CHECK(v[3] == INFINITY && v[5] == 0.0f && std::isnan(v[6]) && v[0] == 1.0f);
}

TEST(a_bitcast_needs_types_of_equal_size) {
  using popops::expr::_1;
  CHECK_THROWS(
      popops::internal::compileExpr({popx::expr::Bitcast(_1, poplar::HALF)}, {poplar::FLOAT}),
      "equal size");
}
