#include <cmath>
#include <popnn/NonLinearity.hpp>
#include <popnn/NonLinearityDefUtil.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ExprOpUtils.hpp>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "Fixture.hpp"
#include "OneVertex.hpp"

/// The elementwise vertices of popops and popnn, added by name, against the libraries' functions.
using namespace poplar;
using namespace poplar::program;
using popops::expr::BinaryOpType;
using popops::expr::UnaryOpType;
using poputil::templateVertex;

namespace {

using Floats = std::vector<float>;
const Floats kValues = {-2.5F, -1, -0.3F, 0, 0.2F, 0.75F, 1, 3, 7.5F};

/// The elements of `t` as floats, after the vertex has run.
Floats floatsOf(OneVertex& f, const Tensor& t) {
  f.prog = Sequence({Execute(f.cs)});
  return f.run<float>(t.elementType() == FLOAT ? t : popops::cast(f.graph, t, FLOAT, f.prog));
}
Floats floatsOf(Fixture& f, const Tensor& t) {
  return f.run<float>(t.elementType() == FLOAT ? t : popops::cast(f.graph, t, FLOAT, f.prog));
}

Tensor valuesOn(Fixture& f, const Floats& values, Type type) {
  const Tensor t = f.constant<float>({values.size()}, values, type);
  f.graph.setTileMapping(t, 0);
  return t;
}

void near(const Floats& a, const Floats& b, double tolerance, const std::string& what) {
  CHECK_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]))))
      check::fail(__FILE__, __LINE__, what, ": ", a[i], " != ", b[i], " at ", i);
  }
}

double toleranceOf(Type type) { return type == HALF ? 2e-3 : 2e-6; }

void checkUnary(UnaryOpType op, Type type) {
  const std::string name = templateVertex("popops::UnaryOp1D", op, type);
  OneVertex f(name);
  const bool is_test = op == UnaryOpType::IS_NAN;
  const Tensor out = f.graph.addVariable(is_test ? BOOL : type, {kValues.size()}, "out");
  f.graph.setTileMapping(out, 0);
  f.graph.connect(f.v["in"], valuesOn(f, kValues, type));
  f.graph.connect(f.v["out"], out);
  Fixture library;
  const Tensor expected =
      popops::map(library.graph, op, valuesOn(library, kValues, type), library.prog);
  near(floatsOf(f, out), floatsOf(library, expected), toleranceOf(type), name);
}

void checkBinary(BinaryOpType op, Type type) {
  const std::string name = templateVertex("popops::BinaryOp1DInPlaceSupervisor", op, type);
  const Floats others = {2, -3, 1, 5, -0.5F, 4, 1, 2, 3};
  OneVertex f(name);
  const Tensor out = valuesOn(f, kValues, type);
  f.graph.connect(f.v["in1Out"], out);
  f.graph.connect(f.v["in2"], valuesOn(f, others, type));
  Fixture library;
  const Tensor expected = popops::map(library.graph, op, valuesOn(library, kValues, type),
                                      valuesOn(library, others, type), library.prog);
  near(floatsOf(f, out), floatsOf(library, expected), toleranceOf(type), name);
}

}  // namespace

TEST(unary_vertices_give_what_the_library_does) {
  for (const auto op :
       {UnaryOpType::ABSOLUTE, UnaryOpType::EXPONENT, UnaryOpType::SIGMOID, UnaryOpType::SQRT,
        UnaryOpType::ROUND, UnaryOpType::IS_NAN, UnaryOpType::SIN})
    checkUnary(op, FLOAT);
  for (const auto op : {UnaryOpType::NEGATE, UnaryOpType::TANH, UnaryOpType::LOGARITHM})
    checkUnary(op, HALF);
  for (const auto op : {UnaryOpType::SQUARE, UnaryOpType::BITWISE_NOT}) checkUnary(op, INT);
}

TEST(binary_vertices_give_what_the_library_does) {
  for (const auto op :
       {BinaryOpType::ADD, BinaryOpType::DIVIDE, BinaryOpType::MAXIMUM, BinaryOpType::POWER})
    checkBinary(op, FLOAT);
  for (const auto op : {BinaryOpType::MULTIPLY, BinaryOpType::SUBTRACT}) checkBinary(op, HALF);
  for (const auto op : {BinaryOpType::REMAINDER, BinaryOpType::BITWISE_XOR}) checkBinary(op, INT);
}

TEST(vertices_of_rows_and_comparisons) {
  OneVertex f(templateVertex("popops::BinaryOp2D", BinaryOpType::LESS_THAN, FLOAT));
  const Tensor a = f.onTile<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = f.onTile<float>({2, 3}, {2, 2, 2, 5, 5, 5});
  const Tensor out = f.graph.addVariable(BOOL, {2, 3}, "out");
  f.graph.setTileMapping(out, 0);
  f.graph.connect(f.v["in1"], a);
  f.graph.connect(f.v["in2"], b);
  f.graph.connect(f.v["out"], out);
  CHECK(floatsOf(f, out) == (Floats{1, 0, 0, 1, 0, 0}));

  OneVertex g(templateVertex("popops::UnaryOp2DInPlace", UnaryOpType::SQUARE, INT));
  const Tensor x = g.onTile<int>({2, 2}, {1, -2, 3, -4});
  g.graph.connect(g.v["inOut"], x);
  CHECK(g.result<int>(x) == (std::vector<int>{1, 4, 9, 16}));
}

TEST(operations_that_a_type_lacks_are_told) {
  OneVertex f(templateVertex("popops::UnaryOp1DInPlace", UnaryOpType::SIN, INT));
  const Tensor x = f.onTile<int>({1}, {1});
  f.graph.connect(f.v["inOut"], x);
  CHECK_THROWS(f.result<int>(x), "popops has no such operation on this type");
  CHECK_THROWS(OneVertex("popops::UnaryOp7D<float>"), "popops::UnaryOp7D<float>");
}

TEST(vertices_take_the_cycles_of_the_library) {
  const auto by_name = [](BinaryOpType op, Type type, unsigned n) {
    OneVertex f(templateVertex("popops::BinaryOp1DInPlace", op, type));
    f.graph.connect(f.v["in1Out"], valuesOn(f, Floats(n, 1), type));
    f.graph.connect(f.v["in2"], valuesOn(f, Floats(n, 1), type));
    return f.cycles();
  };
  const auto by_function = [](BinaryOpType op, Type type, unsigned n) {
    Fixture f;
    Sequence timed;
    popops::mapInPlace(f.graph, op, valuesOn(f, Floats(n, 1), type),
                       valuesOn(f, Floats(n, 1), type), timed);
    return f.cyclesOf(timed);
  };
  for (const auto type : {FLOAT, HALF, INT}) {
    for (const auto op : {BinaryOpType::ADD, BinaryOpType::DIVIDE})
      CHECK_EQ(by_name(op, type, 1200), by_function(op, type, 1200));
  }
  CHECK_EQ(by_name(BinaryOpType::ADD, FLOAT, 2400) - by_name(BinaryOpType::ADD, FLOAT, 1200),
           6U * 100 * 3);
}

TEST(casts_truncate_and_saturate) {
  OneVertex f(templateVertex("popops::Cast1D", INT, HALF));
  const Tensor dst = f.onTile<float>({3}, {0, 0, 0}, HALF);
  f.graph.connect(f.v["src"], f.onTile<int>({3}, {1, -2049, 7}));
  f.graph.connect(f.v["dst"], dst);
  f.graph.setInitialValue(f.v["numElems"], 3);
  CHECK(floatsOf(f, dst) == (Floats{1, -2048, 7}));
  OneVertex g(templateVertex("popops::Cast", FLOAT, INT));
  const Tensor out = g.onTile<int>({4}, {0, 0, 0, 0});
  g.graph.connect(g.v["src"], g.onTile<float>({4}, {1.9F, -1.9F, 3e10F, NAN}));
  g.graph.connect(g.v["dst"], out);
  g.graph.setInitialValue(g.v["numElems"], 4);
  CHECK(g.result<int>(out) == (std::vector<int>{1, -1, 2147483647, 0}));
}

TEST(casts_of_sdk_2_have_their_workers_packed) {
  constexpr unsigned n = 33;  // nine times four elements: three workers have eight, one less three
  OneVertex f(templateVertex("popops::CastSupervisor", FLOAT, INT));
  Floats values;
  std::vector<int> expected;
  for (unsigned i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(i) + 0.5F);
    expected.push_back(static_cast<int>(i));
  }
  expected.push_back(-1);
  const Tensor out = f.onTile<int>({n + 1}, std::vector<int>(n + 1, -1));
  f.graph.connect(f.v["src"], f.onTile<float>({n}, values));
  f.graph.connect(f.v["dst"], out);
  f.graph.setInitialValue(f.v["partitionParams"], 8 << 9 | 3 << 6 | 5 << 3 | 3);
  CHECK(f.result<int>(out) == expected);
}

TEST(scaled_additions_take_their_scale_as_a_number_or_a_tensor) {
  for (const bool constant : {true, false}) {
    OneVertex f(templateVertex("popops::ScaledAddSupervisor", HALF, HALF, FLOAT, constant, false));
    const Tensor a = f.onTile<float>({5}, {1, 2, 3, 4, 5}, HALF);
    f.graph.connect(f.v["A"], a);
    f.graph.connect(f.v["B"], f.onTile<float>({5}, {10, 20, 30, 40, 50}, HALF));
    f.graph.setInitialValue(f.v["size"], 5);
    if (constant)
      f.graph.setInitialValue(f.v["scaleB"], 0.5F);
    else
      f.graph.connect(f.v["scaleB"], f.onTile<float>({1}, {0.5F}));
    CHECK(floatsOf(f, a) == (Floats{6, 12, 18, 24, 30}));
  }
  OneVertex g(templateVertex("popops::ScaledAdd2D", FLOAT, HALF, FLOAT, false));
  const Tensor a = g.onTile<float>({2, 2}, {1, 2, 3, 4});
  g.graph.connect(g.v["A"], a);
  g.graph.connect(g.v["B"], g.onTile<float>({2, 2}, {1, 1, 2, 2}, HALF));
  g.graph.connect(g.v["scaleB"], g.onTile<float>({}, {-2}));
  CHECK(floatsOf(g, a) == (Floats{-1, 0, -1, 0}));
}

TEST(non_linearities_and_their_gradients) {
  using popnn::NonLinearityType;
  const auto n = static_cast<unsigned>(kValues.size());
  for (const auto type : {NonLinearityType::SIGMOID, NonLinearityType::HARD_SIGMOID,
                          NonLinearityType::RELU, NonLinearityType::TANH, NonLinearityType::GELU,
                          NonLinearityType::GELU_ERF, NonLinearityType::SWISH}) {
    const std::string name = templateVertex("popnn::NonLinearitySupervisor", FLOAT, type);
    OneVertex f(name);
    const Tensor x = valuesOn(f, kValues, FLOAT);
    f.graph.connect(f.v["data"], x);
    f.graph.setInitialValue(f.v["n"], n);
    Fixture library;
    const Tensor y =
        popnn::nonLinearity(library.graph, type, valuesOn(library, kValues, FLOAT), library.prog);
    near(floatsOf(f, x), floatsOf(library, y), 2e-6, name);

    OneVertex g(templateVertex("popnn::NonLinearityGrad1D", FLOAT, type));
    const Floats grads(kValues.size(), 2);
    const Tensor in_grad = valuesOn(g, grads, FLOAT);
    g.graph.connect(g.v["out"], valuesOn(g, kValues, FLOAT));
    g.graph.connect(g.v["outGrad"], valuesOn(g, grads, FLOAT));
    g.graph.connect(g.v["inGrad"], in_grad);
    g.graph.setInitialValue(g.v["n"], n);
    Fixture again;
    const Tensor expected =
        popnn::nonLinearityInputGradient(again.graph, type, valuesOn(again, kValues, FLOAT),
                                         valuesOn(again, grads, FLOAT), again.prog);
    near(floatsOf(g, in_grad), floatsOf(again, expected), 4e-6, name);
  }
}
