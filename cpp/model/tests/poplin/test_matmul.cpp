#include <cmath>
#include <cstdint>
#include <sstream>

#include "Check.hpp"
#include "OnDevice.hpp"
#include "poplin/MatMul.hpp"

namespace {

using poplar::FLOAT;
using poplar::HALF;
using poplar::Tensor;
using poplar::Type;

struct Sizes {
  std::size_t g, m, k, n;
};

/// a [g, m, k] and b [g, k, n], row-major, multiplied in double.
std::vector<double> oracle(const std::vector<double>& a, const std::vector<double>& b,
                           const Sizes& s) {
  std::vector<double> c(s.g * s.m * s.n);
  for (std::size_t g = 0; g < s.g; ++g)
    for (std::size_t i = 0; i < s.m; ++i)
      for (std::size_t k = 0; k < s.k; ++k)
        for (std::size_t j = 0; j < s.n; ++j)
          c[(g * s.m + i) * s.n + j] += a[(g * s.m + i) * s.k + k] * b[(g * s.k + k) * s.n + j];
  return c;
}

void expectNear(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  CHECK_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i])));
}

/// Rows [m, k] out of row-major [k, m] values.
std::vector<double> transposed(const std::vector<double>& values, std::size_t rows,
                               std::size_t cols) {
  std::vector<double> out(values.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) out[j * rows + i] = values[i * cols + j];
  return out;
}

void plain(Type type, const Sizes& s, double tolerance) {
  OnDevice d;
  const Tensor a = d.random(type, {s.m, s.k});
  const Tensor b = d.random(type, {s.k, s.n});
  const Tensor c = poplin::matMul(d.graph, a, b, d.prog, "mm");
  CHECK_EQ(c.shapeToString(), d.graph.addVariable(type, {s.m, s.n}, "y").shapeToString());
  expectNear(d.read(c), oracle(d.values(0), d.values(1), s), tolerance);
}

}  // namespace

TEST(matmul_float_sizes) {
  for (const Sizes& s : {Sizes{1, 1, 1, 1}, Sizes{1, 1, 5, 1}, Sizes{1, 1, 33, 70},
                         Sizes{1, 70, 33, 1}, Sizes{1, 3, 1, 4}, Sizes{1, 17, 300, 31},
                         Sizes{1, 200, 64, 100}, Sizes{1, 64, 0, 3}, Sizes{1, 256, 256, 256}})
    plain(FLOAT, s, 1e-6);
}

TEST(matmul_half_sums_in_float) {
  for (const Sizes& s : {Sizes{1, 1, 5, 1}, Sizes{1, 40, 300, 31}, Sizes{1, 128, 64, 200}})
    plain(HALF, s, 1e-3);
  OnDevice d;  // 4096 * 1 * 1 cannot be summed one by one in half: it would stop at 2048
  const Tensor one = d.graph.addConstant<float>(HALF, {1, 4096}, 1.0f);
  const Tensor c = poplin::matMul(d.graph, one, one.transpose(), d.prog, FLOAT);
  CHECK_EQ(d.read(c)[0], 4096.0);
}

TEST(matmul_half_partials_round) {
  OnDevice d;
  const Sizes s{1, 8, 2048, 16};
  const Tensor a = d.random(HALF, {s.m, s.k});
  const Tensor b = d.random(HALF, {s.k, s.n});
  const Tensor c = poplin::matMul(d.graph, a, b, d.prog, FLOAT, {}, {{"partialsType", "half"}});
  const auto want = oracle(d.values(0), d.values(1), s);
  const auto got = d.read(c);
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - want[i]) / (1 + std::abs(want[i])));
  CHECK(worst < 0.05);
}

TEST(matmul_rounds_half_partials_of_slices_of_input_channels) {
  // With little memory for temporaries one tile adds up few products before it rounds.
  const Sizes s{1, 256, 2048, 256};
  const auto errorAt = [&](const char* proportion) {
    OnDevice d;
    const Tensor a = d.random(HALF, {s.m, s.k});
    const Tensor b = d.random(HALF, {s.k, s.n});
    const poplar::OptionFlags options{{"partialsType", "half"},
                                      {"fullyConnectedPass", "TRAINING_FWD"},
                                      {"availableMemoryProportion", proportion}};
    std::ostringstream plan;
    poplin::matMulReportPlan(plan, d.graph, HALF, FLOAT, {s.m, s.k}, {s.k, s.n}, options);
    const bool sliced = plan.str().find("serial: input channels 1,") == std::string::npos;
    CHECK_EQ(sliced, std::string(proportion) != "0.6");
    const Tensor c = poplin::matMul(d.graph, a, b, d.prog, FLOAT, {}, options);
    const auto want = oracle(d.values(0), d.values(1), s);
    const auto got = d.read(c);
    double squares = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      squares += (got[i] - want[i]) * (got[i] - want[i]);
    return std::sqrt(squares / static_cast<double>(want.size()));
  };
  const double roomy = errorAt("0.6"), tight = errorAt("0.006");
  CHECK(roomy > 0);
  CHECK(tight > roomy);
  CHECK(tight < 2 * roomy);
}

TEST(matmul_options_are_checked) {
  OnDevice d;
  const Tensor a = d.random(FLOAT, {8, 8});
  CHECK_THROWS(poplin::matMul(d.graph, a, a, d.prog, "x", {{"tilesPerIPU", "0"}}),
               "a positive integer");
  CHECK_THROWS(poplin::matMul(d.graph, a, a, d.prog, "x", {{"availableMemoryProportion", "7"}}),
               "a number from 0 to 1");
  CHECK_THROWS(poplin::matMul(d.graph, a, a, d.prog, "x", {{"disableTransformations", "no"}}),
               "true or false");
  for (const auto& [name, value] : {std::pair{"tilesPerIPU", "1000"},
                                    {"enableMultiStageReduce", "false"},
                                    {"disableTransformations", "true"},
                                    {"gatherOutput", "true"},
                                    {"planConstraints", "{}"}})
    poplin::matMul(d.graph, a, a, d.prog, "x", {{name, value}});
}

TEST(matmul_takes_views_in_any_order) {
  OnDevice d;
  const Sizes s{1, 45, 61, 37};
  const Tensor at = d.random(FLOAT, {s.k, s.m});
  const Tensor bt = d.random(FLOAT, {s.n, s.k});
  const Tensor c = poplin::matMul(d.graph, at.transpose(), bt.transpose().reverse(1), d.prog);
  auto b = transposed(d.values(1), s.n, s.k);
  for (std::size_t k = 0; k < s.k; ++k) std::reverse(&b[k * s.n], &b[k * s.n] + s.n);
  expectNear(d.read(c), oracle(transposed(d.values(0), s.k, s.m), b, s), 1e-6);
}

TEST(matmul_grouped) {
  for (const Sizes& s : {Sizes{7, 5, 9, 6}, Sizes{3, 90, 40, 50}, Sizes{64, 16, 16, 16}}) {
    OnDevice d;
    const Tensor a = d.random(FLOAT, {s.g, s.m, s.k});
    const Tensor b = d.random(FLOAT, {s.g, s.k, s.n});
    expectNear(d.read(poplin::matMulGrouped(d.graph, a, b, d.prog, FLOAT)),
               oracle(d.values(0), d.values(1), s), 1e-6);
  }
}

TEST(matmul_grouped_views_as_attention_uses_them) {
  OnDevice d;  // q [batch, time, heads, depth], k likewise: scores [batch * heads, time, time]
  const std::size_t batch = 2, time = 12, heads = 3, depth = 8;
  const Tensor q = d.random(FLOAT, {batch, time, heads, depth});
  const Tensor k = d.random(FLOAT, {batch, time, heads, depth});
  const Tensor left = q.dimShuffle({0, 2, 1, 3}).reshape({batch * heads, time, depth});
  const Tensor right = k.dimShuffle({0, 2, 3, 1}).reshape({batch * heads, depth, time});
  const auto got = d.read(poplin::matMulGrouped(d.graph, left, right, d.prog, FLOAT));
  const auto at = [&](std::size_t input, std::size_t b, std::size_t t, std::size_t h,
                      std::size_t e) {
    return d.values(input)[((b * time + t) * heads + h) * depth + e];
  };
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t y = i % time, x = i / time % time, h = i / time / time % heads;
    const std::size_t b = i / time / time / heads;
    double sum = 0;
    for (std::size_t e = 0; e < depth; ++e) sum += at(0, b, x, h, e) * at(1, b, y, h, e);
    CHECK_NEAR(got[i], sum, 1e-5);
  }
}

TEST(matmul_shared_right_operand) {
  OnDevice d;
  const Sizes s{6, 10, 20, 30};
  const Tensor a = d.random(FLOAT, {s.g, s.m, s.k});
  const Tensor b = d.random(FLOAT, {1, s.k, s.n});
  const auto got = d.read(
      poplin::matMulGrouped(d.graph, a, b.broadcast(static_cast<unsigned>(s.g), 0), d.prog, FLOAT));
  std::vector<double> repeated;
  for (std::size_t g = 0; g < s.g; ++g)
    repeated.insert(repeated.end(), d.values(1).begin(), d.values(1).end());
  expectNear(got, oracle(d.values(0), repeated, s), 1e-6);
}

TEST(matmul_accumulates_in_place) {
  OnDevice d;
  const Sizes s{1, 33, 17, 21};
  const Tensor a = d.random(FLOAT, {s.m, s.k});
  const Tensor b = d.random(FLOAT, {s.k, s.n});
  const Tensor c = d.random(FLOAT, {s.m, s.n});
  poplin::matMulAcc(d.graph, c, -0.5f, a, b, d.prog);
  auto want = oracle(d.values(0), d.values(1), s);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = d.values(2)[i] - 0.5 * want[i];
  expectNear(d.read(c), want, 1e-6);
}

TEST(matmul_integers_wrap) {
  const Sizes s{1, 9, 50, 13};
  for (const Type type : {poplar::INT, poplar::SIGNED_CHAR}) {
    OnDevice d;
    const Tensor a = d.random(type, {s.m, s.k});
    const Tensor b = d.random(type, {s.k, s.n});
    const auto got = d.read(poplin::matMul(d.graph, a, b, d.prog, type));
    const auto want = oracle(d.values(0), d.values(1), s);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto exact = static_cast<std::int32_t>(want[i]);
      CHECK_EQ(got[i], type == poplar::INT ? exact : static_cast<std::int8_t>(exact));
    }
  }
}

TEST(matmul_inputs_are_contiguous_in_the_given_shape) {
  poplin::PlanningCache cache;
  OnDevice d;
  const Tensor a =
      d.fill(poplin::createMatMulInputLHS(d.graph, FLOAT, {96, 50}, {50, 70}, "a", {}, &cache));
  const Tensor b =
      d.fill(poplin::createMatMulInputRHS(d.graph, FLOAT, {96, 50}, {50, 70}, "b", {}, &cache));
  CHECK(a.isContiguous());
  CHECK(b.isContiguous());
  CHECK_EQ(cache.size(), std::size_t{1});
  const Tensor c = poplin::matMul(d.graph, a, b, d.prog, "c", {}, &cache);
  CHECK_EQ(cache.size(), std::size_t{1});
  CHECK(c.isContiguous());
  expectNear(d.read(c), oracle(d.values(0), d.values(1), {1, 96, 50, 70}), 1e-6);
}

TEST(matmul_refuses_what_it_cannot_do) {
  OnDevice d;
  const Tensor a = d.random(FLOAT, {3, 4});
  const Tensor b = d.random(FLOAT, {5, 6});
  const Tensor i = d.random(poplar::INT, {4, 3});
  CHECK_THROWS(poplin::matMul(d.graph, a, b, d.prog), "[3, 4] and [5, 6]");
  CHECK_THROWS(poplin::matMul(d.graph, a, i, d.prog), "float x int");
  CHECK_THROWS(poplin::matMul(d.graph, a, a.transpose(), d.prog, "x", {{"partialType", "half"}}),
               "partialType");
  CHECK_THROWS(poplin::matMul(d.graph, a, a.transpose(), d.prog, "x", {{"partialsType", "int"}}),
               "half or float");
}
