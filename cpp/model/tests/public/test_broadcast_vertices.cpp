#include <popops/Cast.hpp>
#include <popops/ExprOpUtils.hpp>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "OneVertex.hpp"

/// The vertices of popops for a tensor and a scalar or a vector, of scaled additions, and those of
/// three operands, added by name.
using namespace poplar;
using popops::expr::BinaryOpType;
using poputil::templateVertex;

namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;

}  // namespace

TEST(a_tensor_and_a_scalar) {
  OneVertex f(
      templateVertex("popops::BroadcastScalar1DInPlaceSupervisor", BinaryOpType::SUBTRACT, FLOAT));
  const Tensor x = f.onTile<float>({7}, {1, 2, 3, 4, 5, 6, 7});
  f.graph.connect(f.v["data"], x);
  f.graph.connect(f.v["B"], f.onTile<float>({}, {2}));
  CHECK(f.result<float>(x) == (Floats{-1, 0, 1, 2, 3, 4, 5}));

  OneVertex g(templateVertex("popops::BroadcastScalar1D", BinaryOpType::GREATER_THAN, INT));
  const Tensor out = g.graph.addVariable(BOOL, {3}, "out");
  g.graph.setTileMapping(out, 0);
  g.graph.connect(g.v["data"], g.onTile<int>({3}, {1, 4, 9}));
  g.graph.connect(g.v["out"], out);
  g.graph.connect(g.v["B"], g.onTile<int>({}, {3}));
  CHECK(g.result<char>(out) == (std::vector<char>{0, 1, 1}));

  OneVertex h(templateVertex("popops::BroadcastScalar2Types1DSupervisor",
                             BinaryOpType::INV_STD_DEV_TO_VARIANCE, HALF, FLOAT));
  const Tensor variance = h.onTile<float>({2}, {0, 0});
  h.graph.connect(h.v["data"], h.onTile<float>({2}, {0.5F, 1}, HALF));
  h.graph.connect(h.v["out"], variance);
  h.graph.connect(h.v["B"], h.onTile<float>({}, {0.25F}, HALF));
  CHECK(h.result<float>(variance) == (Floats{3.75F, 0.75F}));
}

TEST(rows_and_a_scalar_for_all_or_for_each) {
  OneVertex f(templateVertex("popops::BroadcastScalar2DDataInPlace", BinaryOpType::MULTIPLY, INT));
  const Tensor x = f.onTile<int>({2, 3}, {1, 2, 3, 4, 5, 6});
  f.graph.connect(f.v["data"], x);
  f.graph.connect(f.v["B"], f.onTile<int>({}, {-2}));
  CHECK(f.result<int>(x) == (Ints{-2, -4, -6, -8, -10, -12}));

  OneVertex g(templateVertex("popops::BroadcastScalar2D", BinaryOpType::ADD, FLOAT));
  const Tensor out = g.onTile<float>({2, 2}, {0, 0, 0, 0});
  g.graph.connect(g.v["data"], g.onTile<float>({2, 2}, {1, 2, 3, 4}));
  g.graph.connect(g.v["out"], out);
  g.graph.connect(g.v["B"], g.onTile<float>({2}, {10, 20}));
  CHECK(g.result<float>(out) == (Floats{11, 12, 23, 24}));
}

TEST(vectors_along_the_outer_dimension) {
  for (const char* by : {"Column", "Row"}) {
    const std::string name = std::string("popops::BroadcastVectorOuterBy") + by;
    OneVertex f(templateVertex(name + "InPlaceSupervisor", BinaryOpType::ADD, FLOAT, true));
    const Tensor x = f.onTile<float>({4, 3}, Floats(12, 1));
    f.graph.connect(f.v["data"], x.flatten());
    f.graph.connect(f.v["B"], f.onTile<float>({2}, {10, 20}));
    f.graph.setInitialValue(f.v["columns"], 3);
    f.graph.setInitialValue(f.v["rows"], 4);
    CHECK(f.result<float>(x) == (Floats{11, 11, 11, 21, 21, 21, 11, 11, 11, 21, 21, 21}));

    OneVertex g(templateVertex(name + "1D", BinaryOpType::MULTIPLY, FLOAT, false));
    const Tensor out = g.onTile<float>({2, 2}, {0, 0, 0, 0});
    g.graph.connect(g.v["data"], g.onTile<float>({4}, {1, 2, 3, 4}));
    g.graph.connect(g.v["out"], out.flatten());
    g.graph.connect(g.v["B"], g.onTile<float>({2}, {2, 3}));
    g.graph.setInitialValue(g.v["columns"], 2);
    g.graph.setInitialValue(g.v["rows"], 2);
    CHECK(g.result<float>(out) == (Floats{2, 4, 9, 12}));
  }
}

TEST(vectors_along_the_inner_dimension) {
  constexpr unsigned kBlocks = 8;  // one for each worker, and two
  OneVertex f(templateVertex("popops::BroadcastVectorInnerSupervisor", BinaryOpType::ADD, FLOAT));
  Floats data(2 * kBlocks), expected(2 * kBlocks);
  for (unsigned i = 0; i < 2 * kBlocks; ++i) {
    data[i] = static_cast<float>(i);
    expected[i] = data[i] + (i % 2 == 0 ? 100.0F : 200.0F);
  }
  const Tensor out = f.onTile<float>({2 * kBlocks}, Floats(2 * kBlocks));
  f.graph.connect(f.v["data"], f.onTile<float>({2 * kBlocks}, data));
  f.graph.connect(f.v["B"], f.onTile<float>({2}, {100, 200}));
  f.graph.connect(f.v["out"], out);
  f.graph.setInitialValue(f.v["dataBlockCountPacked"], (kBlocks / 6) << 3 | kBlocks % 6);
  CHECK(f.result<float>(out) == expected);
}

TEST(vectors_along_the_inner_dimension_of_rows) {
  for (const bool in_place : {false, true}) {
    OneVertex f(templateVertex(
        in_place ? "popops::BroadcastVectorInner2DInPlace" : "popops::BroadcastVectorInner2D",
        BinaryOpType::MULTIPLY, FLOAT));
    const Tensor data = f.onTile<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
    const Tensor out = f.onTile<float>({2, 4}, Floats(8));
    f.graph.connect(f.v["data"], data);
    f.graph.connect(f.v["B"], f.onTile<float>({2, 2}, {10, 100, 2, 3}));
    f.graph.connect(f.v["workList"],
                    f.onTile<unsigned short>({5}, {1, 2, 2, 1, 4}, UNSIGNED_SHORT));
    if (!in_place) f.graph.connect(f.v["out"], out);
    CHECK(f.result<float>(in_place ? data : out) == (Floats{10, 200, 30, 400, 10, 12, 14, 16}));
  }
}

TEST(selections_between_tensors_and_scalars) {
  OneVertex f(templateVertex("popops::Select", INT));
  const Tensor choice = f.onTile<char>({2, 2}, {true, false, false, true}, BOOL);
  const Tensor out = f.onTile<int>({2, 2}, {0, 0, 0, 0});
  f.graph.connect(f.v["in1"], f.onTile<int>({2, 2}, {1, 2, 3, 4}));
  f.graph.connect(f.v["in2"], f.onTile<int>({2, 2}, {-1, -2, -3, -4}));
  f.graph.connect(f.v["in3"], choice);
  f.graph.connect(f.v["out"], out);
  CHECK(f.result<int>(out) == (Ints{1, -2, -3, 4}));

  OneVertex g(templateVertex("popops::BroadcastSelect", INT));
  const Tensor scalars = g.onTile<int>({1, 3}, {0, 0, 0});
  g.graph.connect(g.v["in1"], g.onTile<int>({}, {5}));
  g.graph.connect(g.v["in2"], g.onTile<int>({}, {6}));
  g.graph.connect(g.v["in3"], g.onTile<char>({1, 3}, {true, false, true}, BOOL));
  g.graph.connect(g.v["out"], scalars);
  CHECK(g.result<int>(scalars) == (Ints{5, 6, 5}));

  for (const bool first : {true, false}) {
    OneVertex h(templateVertex("popops::BroadcastSelectorSelectInPlace", INT));
    const Tensor x = h.onTile<int>({1, 2}, {1, 2});
    h.graph.connect(h.v["in1Out"], x);
    h.graph.connect(h.v["in2"], h.onTile<int>({1, 2}, {7, 8}));
    h.graph.connect(h.v["in3"], h.onTile<char>({}, {first}, BOOL));
    CHECK(h.result<int>(x) == (first ? Ints{1, 2} : Ints{7, 8}));
  }
}

TEST(clamps_between_tensors_and_scalars) {
  OneVertex f(templateVertex("popops::ClampInPlace", FLOAT));
  const Tensor x = f.onTile<float>({1, 3}, {-5, 0.5F, 5});
  f.graph.connect(f.v["in1Out"], x);
  f.graph.connect(f.v["in2"], f.onTile<float>({1, 3}, {-1, 1, -2}));
  f.graph.connect(f.v["in3"], f.onTile<float>({1, 3}, {1, 2, 2}));
  CHECK(f.result<float>(x) == (Floats{-1, 1, 2}));

  OneVertex g(templateVertex("popops::BroadcastClamp", INT));
  const Tensor out = g.onTile<int>({1, 3}, {0, 0, 0});
  g.graph.connect(g.v["in1"], g.onTile<int>({1, 3}, {-5, 2, 5}));
  g.graph.connect(g.v["in2"], g.onTile<int>({}, {0}));
  g.graph.connect(g.v["in3"], g.onTile<int>({}, {3}));
  g.graph.connect(g.v["out"], out);
  CHECK(g.result<int>(out) == (Ints{0, 2, 3}));
}

/// Vertices of rows take a scalar as a scale, the others a vector of one element.
void checkScales(const std::string& type, Type data, Type scale, bool of_rows, bool has_tolerance,
                 const Floats& want) {
  OneVertex f(type);
  const std::vector<std::size_t> shape =
      of_rows ? std::vector<std::size_t>{1, 3} : std::vector<std::size_t>{3};
  const Tensor a = f.onTile<float>(shape, {1, 2, 4}, data);
  f.graph.connect(f.v["A"], a);
  f.graph.connect(f.v["B"], f.onTile<float>(shape, {8, 16, 32}, data));
  const std::vector<std::size_t> one =
      of_rows ? std::vector<std::size_t>{} : std::vector<std::size_t>{1};
  if (type.find("Add") == std::string::npos)
    f.graph.connect(f.v["scaleA"], f.onTile<float>(one, {3}, scale));
  f.graph.connect(f.v["scaleB"], f.onTile<float>(one, {0.5F}, scale));
  if (!of_rows) f.graph.setInitialValue(f.v["size"], 3);
  if (has_tolerance) f.graph.setInitialValue(f.v["tolerance"], 1e-3F);
  f.prog.add(program::Execute(f.cs));
  CHECK(f.run<float>(popops::cast(f.graph, a, FLOAT, f.prog)) == want);
}

TEST(scales_of_rows_are_scalars_and_those_of_halves_have_a_tolerance) {
  for (const bool of_rows : {false, true}) {
    const std::string kind = of_rows ? "2D" : "Supervisor";
    const auto added = [&](Type t, Type s, bool has_tolerance) {
      checkScales(templateVertex("popops::ScaledAdd" + kind, t, t, s, false, false), t, s, of_rows,
                  has_tolerance, {5, 10, 20});
    };
    added(FLOAT, FLOAT, false);
    added(HALF, HALF, false);
    added(HALF, FLOAT, true);
    for (const bool later : {false, true}) {
      const auto mixed = [&](const std::string& name, Type s, const Floats& want) {
        const std::string type = "popops::" + name + kind;
        checkScales(later ? templateVertex(type, HALF, s, true)
                          : templateVertex(type, HALF, s, false, true),
                    HALF, s, of_rows, s == FLOAT, want);
      };
      mixed("aXPlusbY", FLOAT, {7, 14, 28});
      mixed("aXPlusbY", HALF, {7, 14, 28});
      mixed("aXMinusbY", FLOAT, {-1, -2, -4});
    }
  }
}

TEST(sums_of_two_scaled_tensors) {
  for (const bool constant : {true, false}) {
    OneVertex f(templateVertex("popops::aXMinusbYSupervisor", FLOAT, FLOAT, constant, false));
    const Tensor a = f.onTile<float>({5}, {1, 2, 3, 4, 5});
    f.graph.connect(f.v["A"], a);
    f.graph.connect(f.v["B"], f.onTile<float>({5}, {1, 1, 1, 1, 1}));
    f.graph.setInitialValue(f.v["size"], 5);
    for (const auto& [name, value] : {std::pair("scaleA", 2.0F), std::pair("scaleB", 3.0F)}) {
      if (constant)
        f.graph.setInitialValue(f.v[name], value);
      else
        f.graph.connect(f.v[name], f.onTile<float>({1}, {value}));
    }
    CHECK(f.result<float>(a) == (Floats{-1, 1, 3, 5, 7}));
  }
  OneVertex g(templateVertex("popops::aXPlusbY2D", FLOAT, FLOAT, true, true));
  const Tensor a = g.onTile<float>({2, 2}, {1, 2, 3, 4});
  g.graph.connect(g.v["A"], a);
  g.graph.connect(g.v["B"], g.onTile<float>({2, 2}, {10, 20, 30, 40}));
  g.graph.setInitialValue(g.v["scaleA"], 2.0F);
  g.graph.setInitialValue(g.v["scaleB"], 0.5F);
  CHECK(g.result<float>(a) == (Floats{7, 14, 21, 28}));

  OneVertex h(templateVertex("popops::ScaledSubtract2D", FLOAT, FLOAT, true));
  const Tensor x = h.onTile<float>({1, 2}, {1, 2});
  h.graph.connect(h.v["A"], x);
  h.graph.connect(h.v["B"], h.onTile<float>({1, 2}, {1, 1}));
  h.graph.connect(h.v["scaleB"], h.onTile<float>({}, {3}));
  CHECK(h.result<float>(x) == (Floats{-2, -1}));

  OneVertex product(templateVertex("popops::HadamardProd", FLOAT));
  const Tensor y = product.onTile<float>({1, 2}, {3, 4});
  product.graph.connect(product.v["A"], y);
  product.graph.connect(product.v["B"], product.onTile<float>({1, 2}, {2, -1}));
  CHECK(product.result<float>(y) == (Floats{6, -4}));

  for (const bool constant : {true, false}) {
    OneVertex h(templateVertex("popops::XMinusaXPlusbYSupervisor", HALF, constant, false));
    const Tensor x = h.onTile<float>({3}, {1, 2, 4}, HALF);
    h.graph.connect(h.v["A"], x);
    h.graph.connect(h.v["B"], h.onTile<float>({3}, {8, 16, 32}, HALF));
    h.graph.setInitialValue(h.v["size"], 3);
    if (constant) {
      h.graph.setInitialValueHalf(h.v["scaleA"], std::uint16_t{0x3800});  // 0.5
      h.graph.setInitialValueHalf(h.v["scaleB"], std::uint16_t{0x3400});  // 0.25
    } else {
      h.graph.connect(h.v["scaleA"], h.onTile<float>({1}, {0.5F}, HALF));
      h.graph.connect(h.v["scaleB"], h.onTile<float>({1}, {0.25F}, HALF));
    }
    h.prog.add(program::Execute(h.cs));
    CHECK(h.run<float>(popops::cast(h.graph, x, FLOAT, h.prog)) == (Floats{2.5F, 5, 10}));
  }
}
