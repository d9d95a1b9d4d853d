#include <algorithm>
#include <cmath>
#include <poplin/Cholesky.hpp>
#include <poplin/ConvPreplan.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/MeshGrid.hpp>
#include <poplin/MultiConvolution.hpp>
#include <poplin/TriangularSolve.hpp>
#include <poplin/experimental/LuFactorization.hpp>
#include <poplin/experimental/QRFactorization.hpp>
#include <popops/Cast.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

using Matrix = std::vector<double>;

Matrix product(const Matrix& a, const Matrix& b, std::size_t m, std::size_t k, std::size_t n) {
  Matrix c(m * n, 0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t p = 0; p < k; ++p) c[i * n + j] += a[i * k + p] * b[p * n + j];
  return c;
}

Matrix transposed(const Matrix& a, std::size_t m, std::size_t n) {
  Matrix t(n * m);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) t[j * m + i] = a[i * n + j];
  return t;
}

void checkNear(const std::vector<float>& found, const Matrix& wanted, double tolerance) {
  CHECK_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK_NEAR(found[i], wanted[i], tolerance);
}

/// A random matrix with a large diagonal.
std::vector<float> wellConditioned(std::mt19937& random, std::size_t n) {
  auto a = randomFloats(random, n * n);
  for (std::size_t i = 0; i < n; ++i) a[i * n + i] += static_cast<float>(2 * n) + 1;
  return a;
}

Matrix asDouble(const std::vector<float>& a) { return {a.begin(), a.end()}; }

}  // namespace

TEST(triangular_systems_are_solved) {
  std::mt19937 random(1);
  for (int round = 0; round < 16; ++round) {
    const bool left = round & 1, lower = round & 2, unit = round & 4;
    const std::size_t n = 1 + random() % 6, k = 1 + random() % 3;
    auto a = wellConditioned(random, n);
    if (unit)  // ones take the diagonal's place
      for (auto& x : a) x /= static_cast<float>(2 * n) + 1;
    const auto b = randomFloats(random, n * k);
    Fixture f;
    const Tensor at = f.constant<float>({1, n, n}, a);
    const auto shape = left ? std::vector<std::size_t>{1, n, k} : std::vector<std::size_t>{1, k, n};
    const Tensor x = poplin::triangularSolve(f.graph, at, f.constant<float>(shape, b), left, lower,
                                             unit, f.prog);
    const Tensor mask = poplin::triangularMask(f.graph, at, lower, unit, f.prog);
    const auto found = f.run(concat(x.flatten(), mask.flatten()));
    const Matrix solution(found.begin(), found.begin() + static_cast<long>(n * k));
    const Matrix triangle(found.begin() + static_cast<long>(n * k), found.end());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const bool inside = lower ? i >= j : i <= j;
        const float wanted = i == j && unit ? 1 : inside ? a[i * n + j] : 0;
        CHECK_EQ(static_cast<float>(triangle[i * n + j]), wanted);
      }
    }
    const Matrix back =
        left ? product(triangle, solution, n, n, k) : product(solution, triangle, k, n, n);
    for (std::size_t i = 0; i < b.size(); ++i) CHECK_NEAR(b[i], back[i], 1e-4);
  }
  Fixture f;
  const Tensor a = f.constant<float>({2, 2}, {1, 2, 3, 4});
  CHECK_THROWS(poplin::triangularSolve(f.graph, a, a.slice(0, 1), true, true, false, f.prog),
               "[..., N, K]");
}

TEST(positive_matrices_have_cholesky_factors) {
  std::mt19937 random(2);
  for (int round = 0; round < 8; ++round) {
    const bool lower = round % 2;
    const std::size_t n = 1 + random() % 7;
    const Matrix root = asDouble(wellConditioned(random, n));
    const Matrix a = product(root, transposed(root, n, n), n, n, n);
    Fixture f;
    const Tensor at = f.constant<float>({n, n}, std::vector<float>(a.begin(), a.end()));
    const Matrix factor = asDouble(f.run(
        round < 4 ? poplin::cholesky(f.graph, at, lower, 4, f.prog)
                  : poplin::cholesky(f.graph, at, lower, f.prog, "factor", {{"blockSize", "4"}})));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (lower ? j > i : j < i) CHECK_EQ(factor[i * n + j], 0.0);
    const Matrix other = transposed(factor, n, n);
    const Matrix back = lower ? product(factor, other, n, n, n) : product(other, factor, n, n, n);
    const double largest = *std::max_element(a.begin(), a.end());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK_NEAR(back[i] / largest, a[i] / largest, 1e-6);
  }
}

TEST(factorizations_multiply_back) {
  std::mt19937 random(3);
  for (int round = 0; round < 8; ++round) {
    const std::size_t m = 1 + random() % 6, n = 1 + random() % m;
    auto a = randomFloats(random, m * n);
    for (std::size_t i = 0; i < n; ++i) a[i * n + i] += 12;
    for (const Type& type : {FLOAT, HALF}) {
      Fixture f;
      Tensor input = popops::cast(f.graph, f.constant<float>({m, n}, a), type, f.prog);
      const auto [lower, upper] = poplin::experimental::LUFactorization(f.graph, input, f.prog);
      CHECK(lower.elementType() == type && upper.elementType() == type);
      const auto both = concat(lower.flatten(), upper.flatten());
      const auto found = f.run(popops::cast(f.graph, both, FLOAT, f.prog));
      const Matrix l(found.begin(), found.begin() + static_cast<long>(m * m));
      const Matrix u(found.begin() + static_cast<long>(m * m), found.end());
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (i > j) CHECK_EQ(u[i * n + j], 0.0);
      checkNear(a, product(l, u, m, m, n), type == FLOAT ? 1e-4 : 3e-2);
    }
    Fixture f;
    auto [r, q] = poplin::experimental::createQRFactorizationMatrices(f.graph, FLOAT, m, n, "qr");
    f.graph.setInitialValue(r, a);
    std::vector<float> identity(m * m, 0);
    for (std::size_t i = 0; i < m; ++i) identity[i * m + i] = 1;
    f.graph.setInitialValue(q, identity);
    poplin::experimental::QRFactorization(f.graph, r, q, f.prog);
    const auto found = f.run(concat(q.flatten(), r.flatten()));
    const Matrix orthogonal(found.begin(), found.begin() + static_cast<long>(m * m));
    const Matrix upper(found.begin() + static_cast<long>(m * m), found.end());
    checkNear(a, product(orthogonal, upper, m, m, n), 1e-4);
    checkNear(identity, product(orthogonal, transposed(orthogonal, m, m), m, m, m), 1e-5);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (i > j) CHECK_EQ(upper[i * n + j], 0.0);
  }
}

TEST(products_have_outputs_scales_and_plans) {
  std::mt19937 random(4);
  const std::size_t g = 2, m = 3, k = 5, n = 4;
  const auto a = randomFloats(random, g * m * k), b = randomFloats(random, g * k * n);
  Fixture f;
  poplin::PlanningCache cache;
  const Target& target = f.graph.getTarget();
  poplin::preplanMatMuls({{&target, {FLOAT, FLOAT, {g, m, k}, {g, k, n}}, nullptr}}, cache);
  CHECK_EQ(cache.size(), 1u);
  const Tensor at = f.constant<float>({g, m, k}, a);
  const Tensor bt = poplin::preArrangeMatMulGroupedInputRHS(
      f.graph, {g, m, k}, f.constant<float>({g, k, n}, b), f.prog, FLOAT, {}, {}, &cache);
  Tensor c = poplin::createMatMulGroupedOutput(f.graph, FLOAT, FLOAT, {g, m, k}, {g, k, n}, "c");
  poplin::matMulGroupedWithOutput(f.graph, at, bt, c, f.prog);
  const Tensor scale = f.constant<float>({1}, {0.5f});
  poplin::matMulGroupedAcc(f.graph, c, scale, at, bt, f.prog);
  poplin::matMulAcc(f.graph, c[0], scale, at[0], bt[0], f.prog);
  CHECK(poplin::transposeGroupedMatrix(c).shape() == (std::vector<std::size_t>{g, n, m}));
  const auto found = f.run(c);
  for (std::size_t i = 0; i < g; ++i) {
    const Matrix x = asDouble(
        {a.begin() + static_cast<long>(i * m * k), a.begin() + static_cast<long>((i + 1) * m * k)});
    const Matrix y = asDouble(
        {b.begin() + static_cast<long>(i * k * n), b.begin() + static_cast<long>((i + 1) * k * n)});
    const Matrix wanted = product(x, y, m, k, n);
    for (std::size_t j = 0; j < m * n; ++j)
      CHECK_NEAR(found[i * m * n + j], wanted[j] * (i == 0 ? 2.0 : 1.5), 1e-5);
  }
}

TEST(convolutions_train_with_biases) {
  std::mt19937 random(5);
  const poplin::ConvParams params(FLOAT, 2, {4}, {3}, 2, 3, 1);
  const std::size_t outputs = params.getOutputSize(0);  // 2
  const auto in = randomFloats(random, 2 * 2 * 4), weights = randomFloats(random, 3 * 2 * 3);
  Fixture f;
  poplin::PlanningCache cache;
  const Target& target = f.graph.getTarget();
  poplin::preplan({{&target, params, nullptr}}, {}, cache);
  CHECK_EQ(cache.size(), 1u);
  const Tensor x = f.constant<float>({2, 2, 4}, in), w = f.constant<float>({1, 3, 2, 3}, weights);
  const Tensor out = poplin::createConvOutput(f.graph, params, "out");
  poplin::convolutionWithOutput(f.graph, x, w, out, params, false, f.prog);
  const Tensor biases = poplin::createBiases(f.graph, out);
  f.graph.setInitialValue(biases, std::vector<float>{1, 2, 3});
  poplin::addBias(f.graph, out, biases, f.prog);
  const Tensor before = f.variable("before", out.shape());
  f.prog.add(Copy(out, before));
  poplin::convolutionBiasUpdate(f.graph, before, biases, -1.0f, {}, f.prog);
  poplin::convolutionWeightUpdate(f.graph, before, w, x, params, f.constant<float>({1}, {0.5f}),
                                  f.prog);
  const auto found = f.run(concat({before.flatten(), biases, w.flatten()}));
  std::vector<double> z(2 * 3 * outputs), gradient(3 * 2 * 3, 0), sums(3, 0);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t o = 0; o < 3; ++o) {
      for (std::size_t p = 0; p < outputs; ++p) {
        double& value = z[(b * 3 + o) * outputs + p];
        value = static_cast<double>(o) + 1;
        for (std::size_t i = 0; i < 2; ++i)
          for (std::size_t t = 0; t < 3; ++t)
            value +=
                static_cast<double>(in[(b * 2 + i) * 4 + p + t]) * weights[(o * 2 + i) * 3 + t];
        for (std::size_t i = 0; i < 2; ++i)
          for (std::size_t t = 0; t < 3; ++t)
            gradient[(o * 2 + i) * 3 + t] += value * in[(b * 2 + i) * 4 + p + t];
        sums[o] += value;
      }
    }
  }
  for (std::size_t i = 0; i < z.size(); ++i) CHECK_NEAR(found[i], z[i], 1e-5);
  for (std::size_t o = 0; o < 3; ++o)
    CHECK_NEAR(found[z.size() + o], static_cast<double>(o) + 1 - sums[o], 1e-4);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    CHECK_NEAR(found[z.size() + 3 + i], weights[i] + 0.5 * gradient[i], 1e-4);
  CHECK(poplin::getFwdPerfectCycleCount(f.graph, params) > 0);
  CHECK_THROWS(poplin::convolutionValidateOptions({{"unknown", "1"}}), "unknown");
}

TEST(several_convolutions_run_as_one) {
  std::mt19937 random(6);
  const poplin::ConvParams params(FLOAT, 1, {4}, {2}, 2, 2, 1);
  Fixture f;
  const std::vector<poplin::multiconv::CreateTensorArgs> create{{params, {}, "a"},
                                                                {params, {}, "b"}};
  std::vector<poplin::multiconv::ConvolutionArgs> args;
  std::vector<Tensor> separate;
  for (unsigned i = 0; i < 2; ++i) {
    const Tensor in = poplin::multiconv::createInput(f.graph, create, i);
    const Tensor weights = poplin::multiconv::createWeights(f.graph, create, i);
    f.graph.setInitialValue(in, randomFloats(random, in.numElements()));
    f.graph.setInitialValue(weights, randomFloats(random, weights.numElements()));
    args.push_back({in, weights, params, {}});
    separate.push_back(poplin::convolution(f.graph, in, weights, params, false, f.prog).flatten());
  }
  const auto together = poplin::multiconv::convolution(f.graph, args, false, f.prog);
  auto mixed = args;
  mixed[0].options.set("insertTransformsCycleCountProgs", "true");
  CHECK_THROWS(poplin::multiconv::convolution(f.graph, mixed, false, f.prog), "one value");
  const auto found =
      f.run(concat({separate[0], separate[1], together[0].flatten(), together[1].flatten()}));
  const std::size_t half = found.size() / 2;
  for (std::size_t i = 0; i < half; ++i) CHECK_EQ(found[i], found[half + i]);
  CHECK_THROWS(poplin::multiconv::createInput(f.graph, create, 2), "below 2");
}

TEST(several_convolutions_have_the_forms_without_common_options) {
  std::mt19937 random(7);
  const poplin::ConvParams params(FLOAT, 1, {4}, {2}, 2, 2, 1);
  Fixture f;
  poplin::PlanningCache cache;
  namespace multi = poplin::multiconv;
  const auto in = multi::createInput(f.graph, {{params, {}, "a"}, {params, {}, "b"}}, &cache);
  const auto weights = multi::createWeights(f.graph, {{params, {}, "a"}, {params, {}, "b"}});
  CHECK(in.size() == 2 && weights.size() == 2);
  const Tensor first = multi::createInput(f.graph, {{params, {}, "c"}}, 0);  // still the index
  CHECK(first.shape() == in[0].shape());
  for (const auto& all : {in, weights})
    for (const auto& t : all) f.graph.setInitialValue(t, randomFloats(random, t.numElements()));
  const std::vector<multi::ConvolutionArgs> args{{in[0], weights[0], params, {}},
                                                 {in[1], weights[1], params, {}}};
  const auto out = multi::convolution(f.graph, args, false, f.prog, "old/", &cache);
  const auto same = multi::convolution(f.graph, args, false, f.prog, "new/", {}, &cache);
  const auto scale = f.graph.addConstant(FLOAT, {}, 0.5f);
  f.graph.setTileMapping(scale, 0);
  Tensor deltas = multi::calculateWeightDeltas(f.graph, {{out[0], in[0], params, {}}}, f.prog,
                                               "wd/", &cache)[0];
  const Tensor before = f.graph.clone(weights[0]);
  f.prog.add(program::Copy(weights[0], before));
  multi::convolutionWeightUpdate(f.graph, {{out[0], weights[0], in[0], scale, params, {}}}, f.prog,
                                 "wu/", &cache);
  const auto found = f.run(concat({out[1].flatten(), same[1].flatten(), before.flatten(),
                                   deltas.flatten(), weights[0].flatten()}));
  const std::size_t n = out[1].numElements();
  for (std::size_t i = 0; i < n; ++i) CHECK_EQ(found[i], found[n + i]);
  const std::size_t m = weights[0].numElements();
  for (std::size_t i = 2 * n; i < 2 * n + m; ++i)
    CHECK_NEAR(found[i + 2 * m], found[i] + 0.5f * found[i + m], 1e-5);
}

TEST(grids_span_their_ranges) {
  Fixture f;
  const Tensor x = poplin::linspace(f.graph, FLOAT, -1, 1, 5);
  const Tensor y = poplin::linspace(f.graph, FLOAT, 0, 1, 2);
  const auto grid = poplin::meshgrid2d(f.graph, x, y);
  CHECK(f.run(concat(grid[0].flatten(), grid[1].flatten())) ==
        (std::vector<float>{-1, -0.5f, 0, 0.5f, 1, -1, -0.5f, 0, 0.5f, 1,
                            0,  0,     0, 0,    0, 1,  1,     1, 1,    1}));
  CHECK_THROWS(poplin::linspace(f.graph, INT, 0, 1, 2), "FLOAT or HALF");
}

TEST(parameters_of_convolutions_are_read_from_json) {
  std::istringstream json(R"json({
    "dataType": "half", "outputType": "float", "batchSize": 2, "numConvGroups": 3,
    "inputChannelsPerConvGroup": 4, "outputChannelsPerConvGroup": 5,
    "inputFieldShape": [10, 12], "kernelShape": [3, 1],
    "inputTransform": {"paddingLower": [1, 0], "paddingUpper": [1, 0], "flip": [true, false]},
    "kernelTransform": {"dilation": [2, 1]},
    "outputTransform": {"stride": [2, 1], "truncationUpper": [1, 0]}
  })json");
  poplin::ConvParams read;
  json >> read;
  poplin::ConvParams wanted(HALF, FLOAT, 2, {10, 12}, {3, 1}, 4, 5, 3);
  wanted.inputTransform.paddingLower = wanted.inputTransform.paddingUpper = {1, 0};
  wanted.inputTransform.flip = {true, false};
  wanted.kernelTransform.dilation = {2, 1};
  wanted.outputTransform.stride = {2, 1};
  wanted.outputTransform.truncationUpper = {1, 0};
  CHECK(read == wanted);
  CHECK_EQ(read.getOutputSize(0), 4U);  // of 12 padded elements 8 positions, 7 kept, every second
  std::istringstream batch(R"({"batchSize": "7"})");  // the rest but the transforms stays
  batch >> read;
  CHECK_EQ(read.batchSize, 7U);
  CHECK(read.kernelTransform == poplin::ConvParams::InputTransform(2));
}

TEST(json_that_is_no_convolution_is_refused_and_changes_nothing) {
  const poplin::ConvParams before(FLOAT, 1, {4}, {2}, 2, 2, 1);
  const auto refused = [&](const std::string& text, const char* why) {
    poplin::ConvParams params = before;
    std::istringstream json(text);
    CHECK_THROWS(json >> params, why);
    CHECK(params == before);
  };
  refused("", "a JSON object");
  refused("[]", "a JSON object");
  refused(R"({"batchSize": 2)", "a JSON object");
  refused(R"({"batchSize": 2} x)", "a JSON object");
  refused(R"({"batchSize": -1})", "whole numbers in batchSize; got -1");
  refused(R"({"batchSize": 99999999999999999999999})", "whole numbers in batchSize");
  refused(R"({"batchSize": [1, 2]})", "one value of batchSize; got 2");
  refused(R"({"batchSize": 1, "batchSize": 2})", "'batchSize' twice");
  refused(R"({"inputTransform": {"flip": [true]}, "inputTransform.flip": [true]})", "twice");
  refused(R"({"batchsize": 1})", "names of ConvParams' fields; got batchsize");
  refused(R"({"dataType": "int"})", "half or float as dataType; got int");
  refused(R"({"inputTransform": {"flip": [2]}})", "true or false in inputTransform.flip; got 2");
  refused(R"({"kernelShape": [2, 2]})", "one entry per spatial dimension");
  refused(R"({"outputTransform": {"stride": [0]}})", "strides of at least 1");
}
