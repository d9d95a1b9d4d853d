#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <poplar/Engine.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <set>
#include <sstream>

#include "Check.hpp"
#include "engine/ops/ExprOp.hpp"
#include "popops/internal/MapCodelet.hpp"
#include "public/Fixture.hpp"

/// Codelets that popops::outputGeneratedCodelet writes give the results of popops::map.
using namespace poplar;
using namespace poplar::program;
using ipujax::engine::expr::Op;
namespace pe = popops::expr;

namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::string codeletOf(Fixture& f, const pe::Expr& e, const std::vector<Tensor>& ts) {
  std::ostringstream text;
  popops::outputGeneratedCodelet(f.graph.getTarget(), e, ts, {}, text);
  return text.str();
}

std::string vertexOf(const std::string& code) {
  const auto at = code.find("class Map_") + 6;
  return "popops::map::" + code.substr(at, code.find(' ', at) - at);
}

/// Compares the codelet and popops::map of each of several expressions in one run.
struct Comparison {
  Fixture f{4};
  ComputeSet set = f.graph.addComputeSet("codelets");
  std::string source;
  std::set<std::string> known;
  struct Pair {
    std::string what;
    Tensor codelet, map;
  };
  std::vector<Pair> pairs;

  void add(const std::string& what, const pe::Expr& e, const std::vector<Tensor>& ts) {
    const std::string code = codeletOf(f, e, ts);
    if (known.insert(vertexOf(code)).second) source += code;
    const Tensor map = popops::map(f.graph, e, ts, f.prog);
    pairs.push_back({what, f.graph.addVariable(map.elementType(), map.shape()), map});
    f.graph.setTileMapping(pairs.back().codelet, 1);
    waiting.push_back([this, vertex = vertexOf(code), code, ts, out = pairs.back().codelet] {
      const auto v = f.graph.addVertex(set, vertex);
      f.graph.setTileMapping(v, 1);
      std::size_t most = 1;
      for (const auto& t : ts) most = std::max(most, t.numElements());
      for (std::size_t k = 0; k < ts.size(); ++k) {
        const std::string field = "in" + std::to_string(k + 1);
        if (code.find(" " + field + ";") == std::string::npos) continue;
        const bool scalar = most > 1 && ts[k].numElements() == 1;
        f.graph.connect(v[field], scalar ? ts[k].reshape({}) : ts[k].flatten());
      }
      f.graph.connect(v["out"], out.flatten());
    });
  }

  /// `same` compares two results, which are cast to float.
  void check(const std::function<bool(float, float)>& same) {
    std::istringstream text(source);
    f.graph.addCodelets(text);
    for (const auto& connect : waiting) connect();
    f.prog.add(Execute(set));
    std::vector<Tensor> got, wanted;
    for (auto& [what, codelet, map] : pairs) {
      got.push_back(popops::cast(f.graph, codelet.flatten(), FLOAT, f.prog));
      wanted.push_back(popops::cast(f.graph, map.flatten(), FLOAT, f.prog));
    }
    const auto values = f.run<float>(concat(concat(got), concat(wanted)));
    std::size_t at = 0;
    for (const auto& [what, codelet, map] : pairs)
      for (std::size_t i = 0; i < map.numElements(); ++i, ++at) {
        const float a = values[at];
        const float b = values[values.size() / 2 + at];
        if (std::isnan(a) && std::isnan(b)) continue;
        if (!same(a, b))
          std::fprintf(stderr, "%s at %zu: %.9g by the codelet, %.9g by map\n", what.c_str(), i, a,
                       b);
        CHECK(same(a, b));
      }
    CHECK(at > 0);
  }

 private:
  std::vector<std::function<void()>> waiting;
};

/// Adds every operation of a type on the operands; returns their number.
int addAll(Comparison& c, const std::vector<Tensor>& operands) {
  int count = 0;
  const auto type = operands[0].elementType();
  for (int i = 0; i < ipujax::engine::expr::kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const auto needed = static_cast<std::size_t>(ipujax::engine::expr::numOperands(op));
    if (op == Op::kSelect || op == Op::kRotateLeft || needed == 0) continue;
    if (popops::internal::codeletText(op, type.element()).empty()) continue;
    std::vector<pe::NodeRef> args;
    for (std::size_t k = 0; k < needed; ++k)
      args.push_back(pe::PlaceHolder(static_cast<unsigned>(k) + 1).node());
    c.add(std::string(ipujax::engine::expr::nameOf(op)) + " of " + type.toString(),
          pe::Expr(pe::makeOp(op, args)), {operands.begin(), operands.begin() + needed});
    ++count;
  }
  return count;
}

bool nearFloat(float a, float b) {
  return a == b || std::abs(a - b) <= 4e-6F * std::abs(b) + 1e-7F;
}
bool nearHalf(float a, float b) { return a == b || std::abs(a - b) <= std::abs(b) / 1024 + 6e-8F; }
bool equal(float a, float b) { return a == b; }

const std::vector<float> kX{0.0F, -0.0F, 1.0F, -1.0F, 0.3F,  -0.7F,
                            2.5F, -3.5F, 7.0F, kInf,  -kInf, kNan};
const std::vector<float> kY{-0.0F, 0.0F, 2.0F,  3.0F, -0.5F, 1.5F,
                            kNan,  2.0F, -2.0F, 1.0F, 3.0F,  1.0F};
const std::vector<float> kZ{1.0F, 1.0F, 2.0F, 4.0F, 0.5F, 1.5F, 3.0F, 2.0F, 5.0F, 6.0F, 7.0F, 8.0F};

template <class T>
std::vector<Tensor> wholeOperands(Comparison& c) {
  const T low = std::numeric_limits<T>::min();
  const T high = std::numeric_limits<T>::max();
  const auto minus = static_cast<T>(-1);
  return {c.f.constant<T>({8}, {0, 1, low, high, minus, 5, 100, low}),
          c.f.constant<T>({8}, {0, 3, minus, 2, minus, 2, 60, 0}),
          c.f.constant<T>({8}, {1, 4, high, 3, 0, 7, 99, high})};
}

}  // namespace

TEST(every_operation_of_floats) {
  Comparison c;
  CHECK(addAll(c, {c.f.constant<float>({12}, kX), c.f.constant<float>({12}, kY),
                   c.f.constant<float>({12}, kZ)}) >= 50);
  c.check(nearFloat);
}

TEST(operations_of_halves_round_after_each) {
  Comparison c;
  const auto x = c.f.constant<float>({12}, kX, HALF);
  const auto y = c.f.constant<float>({12}, kY, HALF);
  CHECK(addAll(c, {x, y, c.f.constant<float>({12}, kZ, HALF)}) >= 50);
  c.check(nearHalf);
  Comparison sums;
  const auto large = sums.f.constant<float>({2}, {2048.0F, 60000.0F}, HALF);
  sums.add("rounded", pe::_1 + 1.0F + 1.0F, {large});  // 2049 rounds to 2048 before the second
  sums.check(equal);
}

TEST(every_operation_of_integers) {
  Comparison c;
  CHECK(addAll(c, wholeOperands<int>(c)) >= 25);
  CHECK(addAll(c, wholeOperands<unsigned>(c)) >= 25);
  CHECK(addAll(c, wholeOperands<short>(c)) >= 25);
  c.check(equal);
}

TEST(every_operation_of_booleans) {
  Comparison c;
  const auto bools = [&c](const std::vector<int>& values) {
    return popops::cast(c.f.graph, c.f.constant<int>({4}, values), BOOL, c.f.prog);
  };
  const auto a = bools({0, 0, 1, 1});
  const auto b = bools({0, 1, 0, 1});
  CHECK(addAll(c, {a, b}) >= 5);
  c.add("select", pe::Select(pe::_1, pe::_2, !pe::_2), {a, b});
  c.check(equal);
}

TEST(casts_constants_and_scalars) {
  Comparison c;
  const auto x = c.f.constant<float>({6}, {-3.7F, 0.0F, 3e9F, kNan, -kInf, 200.4F});
  const auto n = c.f.constant<int>({6}, {0, -1, 5, 1 << 30, -129, 7});
  const auto one = c.f.constant<float>({1}, {0.1F});
  c.add("float to int", pe::Cast(pe::_1, INT), {x});
  c.add("float to unsigned", pe::Cast(pe::_1, UNSIGNED_INT), {x});
  c.add("float to char", pe::Cast(pe::_1, SIGNED_CHAR), {x});
  c.add("float to bool", pe::Cast(pe::_1, BOOL), {x});
  c.add("int to half", pe::Cast(pe::_1, HALF), {n});
  c.add("int to short", pe::Cast(pe::_1, SHORT), {n});
  c.add("constants", pe::_1 * -2147483647 - 1 + pe::Cast(pe::_2 * kInf, INT), {n, x});
  c.add("scalar", pe::Max(pe::_1, pe::_3) * pe::_3 + pe::Cast(pe::_2, FLOAT), {x, n, one});
  c.add("one constant", pe::Select(pe::Const(2.5F), pe::_1, pe::IsNaN(pe::_1)), {x});
  c.check(nearFloat);
}

TEST(a_codelet_computes_the_formula) {
  Fixture f;
  const std::vector<float> xs{0.1F, -2.0F, 3.0F}, ys{1.0F, 0.5F, -4.0F};
  const auto x = f.constant<float>({3}, xs);
  const auto y = f.constant<float>({3}, ys);
  const auto code =
      codeletOf(f, pe::Tanh(pe::_1 * 2.0F + pe::_2) / (pe::Abs(pe::_2) + 1.5F), {x, y});
  CHECK_EQ(code, codeletOf(f, pe::Tanh(pe::_1 * 2.0F + pe::_2) / (pe::Abs(pe::_2) + 1.5F), {x, y}));
  std::istringstream text(code);
  f.graph.addCodelets(text);
  const auto set = f.graph.addComputeSet();
  const auto v = f.graph.addVertex(set, vertexOf(code), {{"in1", x}, {"in2", y}});
  const auto out = f.graph.addVariable(FLOAT, {3});
  f.graph.setTileMapping(out, 2);
  f.graph.setTileMapping(v, 2);
  f.graph.connect(v["out"], out);
  f.prog.add(Execute(set));
  const auto got = f.run<float>(out);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK_NEAR(got[i], std::tanh(xs[i] * 2 + ys[i]) / (std::abs(ys[i]) + 1.5), 1e-6);
}

TEST(what_no_codelet_can_hold_is_refused) {
  Fixture f;
  const auto x = f.constant<float>({3}, {1, 2, 3});
  std::ostringstream text;
  CHECK_THROWS(popops::outputGeneratedCodelet(f.graph.getTarget(), pe::_1 + pe::_2, {x}, {}, text),
               "needs an index below 1");
  CHECK_THROWS(popops::outputGeneratedCodelet(f.graph.getTarget(), pe::Const(1), {}, {}, text),
               "at least one tensor");
  const auto y = f.constant<float>({2}, {1, 2});
  CHECK_THROWS(
      popops::outputGeneratedCodelet(f.graph.getTarget(), pe::_1 + pe::_2, {x, y}, {}, text),
      "broadcast together");
  const pe::Expr bits(pe::makeOp(Op::kRoundToBFloat16, {pe::_1.node()}));
  CHECK_THROWS(popops::outputGeneratedCodelet(f.graph.getTarget(), bits, {x}, {}, text),
               "round_to_bfloat16. Write it in operations of popops");
  CHECK(text.str().empty());
}
