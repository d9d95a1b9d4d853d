#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "Check.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/ops/SoftwareArithmetic.hpp"

/// double and 64-bit integers: expressions, casts, products, and their cost.
namespace {
using namespace ipujax::engine;
using expr::ExprBuilder;
using expr::ExprEvaluator;
using expr::Op;

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class In, class Out>
std::vector<Out> run(const expr::ExprProgram& program, const std::vector<std::vector<In>>& inputs) {
  const auto n = static_cast<std::int64_t>(inputs[0].size());
  std::vector<Out> out(inputs[0].size());
  std::vector<const std::byte*> in;
  for (const auto& values : inputs) in.push_back(reinterpret_cast<const std::byte*>(values.data()));
  std::byte* const outs[] = {reinterpret_cast<std::byte*>(out.data())};
  ExprEvaluator(expr::ExprProgram::fromIntegers(program.toIntegers())).run(in, outs, n);
  return out;
}

double unary(Op op, double x) {
  ExprBuilder builder({ElementType::kDouble});
  builder.output(builder.apply(op, {builder.input(0)}));
  return run<double, double>(builder.build(), {{x}})[0];
}

double binary(Op op, double x, double y) {
  ExprBuilder builder({ElementType::kDouble, ElementType::kDouble});
  builder.output(builder.apply(op, {builder.input(0), builder.input(1)}));
  return run<double, double>(builder.build(), {{x}, {y}})[0];
}

template <class From, class To>
To cast(ElementType from, ElementType to, From x) {
  ExprBuilder builder({from});
  builder.output(builder.cast(builder.input(0), to));
  return run<From, To>(builder.build(), {{x}})[0];
}

}  // namespace

TEST(double_functions_are_the_c_library_s) {
  for (const double x : {-3.75, -0.5, 0.25, 0.9999999, 1.0 / 3, 17.125}) {
    CHECK_EQ(unary(Op::kExp, x), std::exp(x));
    CHECK_EQ(unary(Op::kTanh, x), std::tanh(x));
    CHECK_EQ(unary(Op::kSin, x), std::sin(x));
    CHECK_EQ(unary(Op::kNearbyInt, x), std::nearbyint(x));
    CHECK_EQ(unary(Op::kRound, x), std::round(x));
    CHECK_EQ(binary(Op::kPower, 1.5, x), std::pow(1.5, x));
    CHECK_EQ(binary(Op::kAtan2, x, 2), std::atan2(x, 2));
    CHECK_EQ(binary(Op::kAdd, x, 1e-17), x + 1e-17);
  }
}

TEST(double_inverse_error_function_undoes_erf) {
  for (const double y : {-2.5, -0.7, -1e-9, 0.0, 0.3, 1.0, 3.0, 4.5})
    CHECK_NEAR(unary(Op::kErfInv, std::erf(y)), y, 1e-16 + 4e-16 / std::erfc(std::abs(y)));
  CHECK_EQ(unary(Op::kErfInv, 1.0), kInf);
  CHECK(std::isnan(unary(Op::kErfInv, 1.5)));
}

TEST(double_extremes_propagate_nan_and_order_zeros) {
  CHECK(std::isnan(binary(Op::kMaximum, std::nan(""), 1)));
  CHECK(std::isnan(binary(Op::kMinimum, 1, std::nan(""))));
  CHECK(!std::signbit(binary(Op::kMaximum, -0.0, 0.0)));
  CHECK(std::signbit(binary(Op::kMinimum, 0.0, -0.0)));
}

TEST(double_casts_saturate_and_round) {
  using E = ElementType;
  CHECK_EQ((cast<double, std::int64_t>(E::kDouble, E::kInt64, 1e300)),
           std::numeric_limits<std::int64_t>::max());
  CHECK_EQ((cast<double, std::int64_t>(E::kDouble, E::kInt64, -kInf)),
           std::numeric_limits<std::int64_t>::min());
  CHECK_EQ((cast<double, std::uint64_t>(E::kDouble, E::kUInt64, -1)), 0u);
  CHECK_EQ((cast<double, std::int32_t>(E::kDouble, E::kInt32, std::nan(""))), 0);
  CHECK_EQ((cast<double, std::int8_t>(E::kDouble, E::kInt8, -3.9)), -3);
  CHECK_EQ((cast<double, float>(E::kDouble, E::kFloat, 0.1)), 0.1f);
  CHECK_EQ((cast<float, double>(E::kFloat, E::kDouble, 0.1f)), static_cast<double>(0.1f));
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  CHECK_EQ((cast<std::int64_t, double>(E::kInt64, E::kDouble, odd)), static_cast<double>(odd));
}

TEST(double_reduce_precision_of_float_and_half_formats) {
  ExprBuilder builder({ElementType::kDouble});
  builder.output(builder.reducePrecision(builder.input(0), 8, 23));
  const auto rounded = run<double, double>(builder.build(), {{0.1, 1e300, -1e-300, kInf}});
  CHECK_EQ(rounded[0], static_cast<double>(0.1f));
  CHECK_EQ(rounded[1], kInf);
  CHECK_EQ(std::bit_cast<std::uint64_t>(rounded[2]), std::uint64_t{1} << 63);
  CHECK_EQ(rounded[3], kInf);
}

TEST(double_constants_keep_their_bits) {
  ExprBuilder builder({ElementType::kDouble});
  const auto tenth = builder.constantFrom(ElementType::kDouble, 0.1);
  builder.output(builder.apply(Op::kMultiply, {builder.input(0), tenth}));
  CHECK_EQ((run<double, double>(builder.build(), {{3.0}})[0]), 3.0 * 0.1);
}

TEST(software_arithmetic_costs_more_than_the_tile_s_own) {
  for (const Op op : {Op::kAdd, Op::kMultiply, Op::kDivide, Op::kExp})
    CHECK(softwareCycles(op, ElementType::kDouble) > 40);
  CHECK(softwareCycles(Op::kDivide, ElementType::kInt64) > 100);
  CHECK(softwareMultiplyAddCycles(ElementType::kDouble) >
        softwareMultiplyAddCycles(ElementType::kInt64));
}
