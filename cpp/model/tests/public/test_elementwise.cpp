// Maps of several expressions, casts in compute sets, and names of operations.
#include <cmath>
#include <poplar/CSRFunctions.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ExprOpUtils.hpp>
#include <popops/OperationDefUtil.hpp>
#include <popops/codelets.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>
#include <random>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

namespace {

struct Operands : Fixture {
  std::vector<int> a{1, -2, 3, 40, 5, 6, -7};
  std::vector<int> b{7, 6, -5, 4, 3, 2, 1};
  Tensor x = constant<int>({7}, a);
  Tensor y = constant<int>({7}, b);
};

template <class T>
std::string textOf(const T& value) {
  using namespace pe::ostream_ext;
  std::ostringstream text;
  text << value;
  return text.str();
}

enum class Shape { kRound };

}  // namespace

template <>
struct poputil::VertexTemplateToString<Shape> {
  static std::string to_string(const Shape&) { return "Shape::kRound"; }
};

TEST(several_expressions_have_a_result_each) {
  Operands f;
  const auto outs =
      popops::map(f.graph, {pe::_1 + pe::_2, pe::_1 * pe::_2}, {f.x, f.y}, f.prog, "two");
  CHECK_EQ(outs.size(), 2U);
  const auto both = f.run<int>(concat(outs));
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK_EQ(both[i], f.a[i] + f.b[i]);
    CHECK_EQ(both[7 + i], f.a[i] * f.b[i]);
  }
}

TEST(several_expressions_in_place_read_what_was_before) {
  Operands f;
  popops::mapInPlace(f.graph, {pe::_1 + pe::_2, pe::_1 * pe::_2}, {f.x, f.y}, f.prog, "two");
  const auto both = f.run<int>(concat(f.x, f.y));
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK_EQ(both[i], f.a[i] + f.b[i]);
    CHECK_EQ(both[7 + i], f.a[i] * f.b[i]);
  }
}

TEST(several_expressions_with_outputs_of_their_own) {
  Operands f;
  const auto sum = f.graph.addVariable(INT, {7}, VariableMappingMethod::LINEAR);
  const auto is_less = f.graph.addVariable(BOOL, {7}, VariableMappingMethod::LINEAR);
  popops::mapWithOutput(f.graph, {pe::_1 - pe::_2, pe::_1 < pe::_2}, {f.x, f.y}, {sum, is_less},
                        f.prog);
  const auto got = f.run<int>(popops::select(f.graph, sum, f.y, is_less, f.prog));
  for (std::size_t i = 0; i < 7; ++i) CHECK_EQ(got[i], f.a[i] < f.b[i] ? f.a[i] - f.b[i] : f.b[i]);
  CHECK_THROWS(popops::mapWithOutput(f.graph, {pe::_1, pe::_2}, {f.x, f.y},
                                     std::vector<Tensor>{sum}, f.prog),
               "one output for each");
  CHECK_THROWS(
      popops::mapInPlace(f.graph, {pe::_1 + 1, pe::_1 + 2, pe::_1 + 3}, {f.x, f.y}, f.prog),
      "3 expressions");
}

TEST(casts_in_a_compute_set) {
  Operands f;
  const auto cs = f.graph.addComputeSet("casts");
  const auto halves = popops::cast(f.graph, f.x, HALF, cs, "halves");
  const auto floats = f.graph.addVariable(FLOAT, {7}, VariableMappingMethod::LINEAR);
  popops::cast(f.graph, f.y, floats, cs);
  f.prog.add(Execute(cs));
  const auto back = popops::cast(f.graph, halves, FLOAT, f.prog);
  const auto got = f.run(concat(back, floats));
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK_EQ(got[i], static_cast<float>(f.a[i]));
    CHECK_EQ(got[7 + i], static_cast<float>(f.b[i]));
  }
}

TEST(accuracy_of_a_cast_to_half) {
  const auto isClose = [](float value, double tolerance) {
    Fixture f;
    const auto x = f.constant<float>({1}, {value});
    const auto is_close = popops::checkAccuracyWhenCast(f.graph, x, HALF, tolerance, f.prog);
    return f.run<int>(popops::cast(f.graph, is_close, INT, f.prog))[0] == 1;
  };
  CHECK(isClose(0.5F, 1e-6));
  CHECK(!isClose(1.0F / 3, 1e-6));
  CHECK(isClose(1.0F / 3, 1e-3));
  CHECK(!isClose(1e6F, 1e-3));
  CHECK(!isClose(1e-9F, 1e-3));
  Fixture f;
  const auto two = f.constant<float>({2}, {1, 2});
  CHECK_THROWS(popops::checkAccuracyWhenCast(f.graph, two, HALF, 0.1, f.prog), "one FLOAT");
}

TEST(accuracy_of_a_cast_is_that_of_the_nearest_half) {
  Fixture f;
  poplar::setStochasticRounding(f.graph, f.prog, true);
  std::vector<Tensor> all;
  for (int i = 0; i < 20; ++i) {  // 15 below 65504, 17 above 65472
    const auto x = f.constant<float>({1}, {65489});
    const auto is_close = popops::checkAccuracyWhenCast(f.graph, x, HALF, 2.4e-4, f.prog);
    all.push_back(popops::cast(f.graph, is_close.reshape({1}), INT, f.prog));
  }
  CHECK(f.run<int>(concat(all)) == std::vector<int>(20, 1));
}

TEST(operations_have_names) {
  CHECK_EQ(textOf(pe::UnaryOpType::ABSOLUTE), std::string("ABSOLUTE"));
  CHECK_EQ(textOf(pe::BinaryOpType::SHIFT_RIGHT), std::string("SHIFT_RIGHT"));
  CHECK_EQ(textOf(pe::TernaryOpType::CLAMP), std::string("CLAMP"));
  CHECK_EQ(std::string(poputil::asString(popops::Operation::SQUARE_ADD)),
           std::string("Square Add"));
  CHECK_EQ(poputil::templateVertex("A", popops::Operation::LOGICAL_OR, FLOAT, true, 3, "text",
                                   Shape::kRound),
           std::string("A<popops::Operation::LOGICAL_OR,float,true,3,text,Shape::kRound>"));
}

TEST(plans_made_together_are_those_made_alone) {
  Fixture f;
  using popops::embedding::SlicePlanningParameters;
  const std::vector<SlicePlanningParameters> wanted{
      SlicePlanningParameters(f.graph, HALF, 2, 10, 4, {1, 1}, {}),
      SlicePlanningParameters(f.graph, FLOAT, 1, 4, 16, {2}, {})};
  const auto plans = popops::embedding::planMultiple(wanted);
  CHECK_EQ(plans.size(), 2U);
  CHECK(plans[0] != plans[1]);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& d = wanted[i];
    CHECK(plans[i] == popops::embedding::plan(d.graph, d.dataType, d.groupSize, d.numEntries,
                                              d.outputSize, d.numLookups, d.optionFlags));
  }
}

TEST(expressions_tell_their_class_and_parts) {
  const pe::Any clamp = pe::Clamp(pe::_1 + 2.5F, pe::Cast(pe::_2, HALF), pe::Const(7));
  CHECK(clamp.isA<pe::Clamp>());
  CHECK(clamp.isA<pe::TernaryOp>());
  CHECK(!clamp.isA<pe::Select>());
  CHECK(!clamp.isA<pe::BinaryOp>());
  CHECK(pe::Shl(pe::_1, pe::_2).isA<pe::Shl>());
  CHECK(!pe::Shl(pe::_1, pe::_2).isA<pe::Shr>());
  const pe::TernaryOp parts(pe::TernaryOpType::SELECT, pe::Neg(pe::_3), pe::Const(0.1F), pe::_1);
  CHECK(parts.getOpType() == pe::TernaryOpType::SELECT);
  CHECK(parts.getArg0().isA<pe::UnaryOp>());
  CHECK(parts.getArg1().isA<pe::Const>());
  CHECK(parts.getArg2().isA<pe::PlaceHolder>());
  const pe::Neg neg(pe::_3);
  CHECK(neg.getOpType() == pe::UnaryOpType::NEGATE);
  CHECK(neg.getArg().deepEquals(pe::_3));
  const pe::Sub sub(pe::_1, pe::_2);
  CHECK(sub.getLHS().deepEquals(pe::_1));
  CHECK(sub.getRHS().deepEquals(pe::_2));
  const pe::Cast cast(pe::_2, HALF);
  CHECK(cast.getRHSType() == HALF);
  CHECK(cast.getLHS().deepEquals(pe::_2));
  for (const float x : {1.0F, 0.1F, 1e-8F, -3.4028235e38F, 1.17549435e-38F})
    CHECK_EQ(std::stof(pe::Const(x).printValue()), x);
  CHECK_EQ(pe::Const(-3).printValue(), std::string("-3"));
  CHECK_EQ(poputil::toProfileValue(pe::BinaryOpType::ADD).asString(), std::string("ADD"));
}

/// Adds `offset` to the index of every placeholder, as a program that joins expressions does.
void shiftPlaceHolders(const pe::Expr* expr, unsigned offset) {
  auto* e = const_cast<pe::Expr*>(expr);
  if (auto* placeholder = dynamic_cast<pe::PlaceHolder*>(e)) {
    *placeholder = pe::PlaceHolder(placeholder->getIndex() + offset);
  } else if (const auto* cast = e->getAs<pe::Cast>()) {
    shiftPlaceHolders(&cast->getLHS(), offset);
  } else if (auto* unary = dynamic_cast<pe::UnaryOp*>(e)) {
    shiftPlaceHolders(&unary->getArg(), offset);
  } else if (auto* binary = dynamic_cast<pe::BinaryOp*>(e)) {
    shiftPlaceHolders(&binary->getLHS(), offset);
    shiftPlaceHolders(&binary->getRHS(), offset);
  } else if (auto* ternary = dynamic_cast<pe::TernaryOp*>(e)) {
    shiftPlaceHolders(&ternary->getArg0(), offset);
    shiftPlaceHolders(&ternary->getArg1(), offset);
    shiftPlaceHolders(&ternary->getArg2(), offset);
  }
}

TEST(operands_of_expressions_can_be_assigned_to) {
  const pe::Any before = pe::Select(-pe::_1, pe::Cast(pe::_2 * pe::_1, FLOAT), pe::_3 < 2.0F);
  const pe::Any expected = pe::Select(-pe::_2, pe::Cast(pe::_3 * pe::_2, FLOAT), pe::_4 < 2.0F);
  pe::Any shifted = before;
  const pe::Any untouched = shifted;
  pe::Expr& inside = shifted;
  shiftPlaceHolders(&inside, 1);
  CHECK(deepEquals(shifted, expected));
  CHECK(deepEquals(untouched, before));
  CHECK(deepEquals(*inside.clone(), expected));
  CHECK(inside.getAs<pe::BinaryOp>() == nullptr);
  // Its node is the one that runs.
  Fixture f;
  const Tensor x = f.constant<float>({2}, {3, 5});
  const pe::Any two = pe::_1 - 1.0F;
  pe::Any other = two;
  shiftPlaceHolders(&static_cast<pe::Expr&>(other), 1);
  const Tensor r = popops::map(f.graph, other, {x, f.constant<float>({2}, {10, 20})}, f.prog);
  CHECK(f.run(r) == (std::vector<float>{9, 19}));
}

TEST(expressions_print_on_one_line_or_on_several) {
  std::ostringstream lines, line;
  lines << (pe::_1 + pe::Const(2)) * pe::_2;
  CHECK_EQ(lines.str(), std::string("multiply(\n  add(\n    _1,\n    2),\n  _2)"));
  (pe::_1 + pe::Const(2)).print(line, 1, false);
  CHECK_EQ(line.str(), std::string(" add(_1, 2)"));
}

template <class T>
void checkBytesOfConstant(T value, Type type) {
  const pe::Const made(value);
  const pe::Const again(made.getTypeTraits(), type, made.getData());
  CHECK_EQ(made.getTypeTraits().size, sizeof(T));
  CHECK_EQ(*reinterpret_cast<const T*>(again.getData()), value);
  CHECK_EQ(again.getDataAsDouble(), static_cast<double>(value));
  CHECK(again.getType() == type);
  if (std::is_integral_v<T>)
    CHECK_EQ(static_cast<T>(again.getDataForUnsignedIntegral()), value);
  else
    CHECK_THROWS(again.getDataForUnsignedIntegral(), "needs an integer");
}

TEST(constants_give_and_take_the_bytes_of_their_value) {
  checkBytesOfConstant(0.1F, HALF);
  checkBytesOfConstant(-0.1, FLOAT);
  checkBytesOfConstant(true, BOOL);
  checkBytesOfConstant<signed char>(-7, SIGNED_CHAR);
  checkBytesOfConstant<unsigned char>(200, UNSIGNED_CHAR);
  checkBytesOfConstant<short>(-30000, SHORT);
  checkBytesOfConstant<unsigned short>(60000, UNSIGNED_SHORT);
  checkBytesOfConstant(-2000000000, INT);
  checkBytesOfConstant(4000000000U, UNSIGNED_INT);
  checkBytesOfConstant(-(1LL << 50), LONGLONG);
  CHECK_THROWS(pe::Const(TypeTraits{}, FLOAT, "abcd"), "needs an integer or a number of float");
}

TEST(gelu_by_the_error_function_has_its_three_forms) {
  Fixture f;
  const std::vector<float> values{-3.0f, -0.5f, 0.0f, 0.25f, 2.0f};
  const Tensor x = f.constant<float>({5}, values);
  const Tensor copy = f.graph.clone(x);
  const Tensor out = f.graph.clone(x);
  const Tensor returned = popops::geluErf(f.graph, x, f.prog);
  popops::geluErfWithOutput(f.graph, x, out, f.prog);
  f.prog.add(Copy(x, copy));
  popops::geluErfInPlace(f.graph, copy, f.prog);
  const auto got = f.run<float>(concat({returned, out, copy}));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = values[i % 5];
    CHECK(std::abs(got[i] - 0.5 * a * (1 + std::erf(a / std::sqrt(2.0)))) < 1e-6);
  }
}

TEST(variances_and_deviations_are_converted_between_types) {
  Fixture f;
  const std::vector<float> variances{0.25f, 1.0f, 4.0f, 90.0f};
  const Tensor x = f.constant<float>({4}, variances);
  const Tensor epsilon = f.constant<float>({1}, {0.01f});
  const Tensor half = popops::varianceToInvStdDev(f.graph, x, epsilon, f.prog, HALF);
  const Tensor same = popops::varianceToInvStdDev(f.graph, x, 0.01f, f.prog, FLOAT, "float");
  const Tensor back = popops::invStdDevToVariance(f.graph, half, 0.01f, f.prog, FLOAT);
  const Tensor again = popops::invStdDevToVariance(f.graph, same, epsilon, f.prog, FLOAT);
  CHECK_EQ(half.elementType(), HALF);
  CHECK_THROWS(popops::varianceToInvStdDev(f.graph, half, 0.01f, f.prog, FLOAT), "of half");
  CHECK_THROWS(popops::invStdDevToVariance(f.graph, x, 0.01f, f.prog, HALF), "of float");
  CHECK_THROWS(popops::varianceToInvStdDev(f.graph, x, x, f.prog, HALF), "epsilon of one element");
  const auto got =
      f.run<float>(concat({popops::cast(f.graph, half, FLOAT, f.prog), same, back, again}));
  for (std::size_t i = 0; i < 4; ++i) {
    const double expected = 1 / std::sqrt(variances[i] + 0.01);
    CHECK(std::abs(got[i] / expected - 1) < 1e-3);
    CHECK(std::abs(got[4 + i] / expected - 1) < 1e-6);
    CHECK(std::abs(got[8 + i] / variances[i] - 1) < 4e-3);
    CHECK(std::abs(got[12 + i] / variances[i] - 1) < 1e-4);
  }
}

TEST(a_map_in_place_converts_to_the_type_of_the_first_tensor) {
  Fixture f;
  const Tensor x = f.constant<float>({4}, {0.5f, -1.0f, 2.0f, 3.0f});
  const Tensor out = f.graph.clone(x);
  f.prog.add(Copy(x, out));
  popops::mapInPlace(f.graph, pe::Cast(pe::_1 > pe::Const(1.0f), INT), {out}, f.prog);
  CHECK(f.run<float>(out) == (std::vector<float>{0, 0, 1, 1}));
}
