#include <cmath>
#include <functional>
#include <poplin/Norms.hpp>
#include <popnn/BatchNorm.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/InstanceNorm.hpp>
#include <popnn/LayerNorm.hpp>
#include <popnn/Norms.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr float kEps = 1e-2f;

/// A normalisation in double: element (n, c, f) belongs to statistic of(n, c).
struct Reference {
  std::size_t n, c, f, statistics;
  std::function<std::size_t(std::size_t, std::size_t)> of;
  bool unbiased;
  std::vector<double> gamma, beta;

  std::size_t statistic(std::size_t i) const { return of(i / (c * f), i / f % c); }
  std::vector<double> mean(const std::vector<double>& x) const {
    std::vector<double> sums(statistics, 0);
    for (std::size_t i = 0; i < x.size(); ++i) sums[statistic(i)] += x[i];
    for (auto& s : sums) s /= static_cast<double>(x.size() / statistics);
    return sums;
  }
  std::vector<double> inverse(const std::vector<double>& x) const {
    const auto m = mean(x);
    std::vector<double> sums(statistics, 0);
    for (std::size_t i = 0; i < x.size(); ++i)
      sums[statistic(i)] += (x[i] - m[statistic(i)]) * (x[i] - m[statistic(i)]);
    const auto count = static_cast<double>(x.size() / statistics);
    const double scale = unbiased && count > 1 ? count / (count - 1) : 1;
    for (auto& s : sums) s = 1 / std::sqrt((s / count + kEps) * scale);
    return sums;
  }
  std::vector<double> whitened(const std::vector<double>& x) const {
    const auto m = mean(x), s = inverse(x);
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - m[statistic(i)]) * s[statistic(i)];
    return y;
  }
  std::vector<double> output(const std::vector<double>& x) const {
    auto y = whitened(x);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = y[i] * gamma[i / f % c] + beta[i / f % c];
    return y;
  }
  /// The gradient of sum(grads * output(x)) by central differences.
  std::vector<double> gradient(std::vector<double> x, const std::vector<double>& grads) const {
    const auto loss = [&] {
      const auto y = output(x);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += grads[i] * y[i];
      return sum;
    };
    std::vector<double> found(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double kept = x[i], step = 1e-5;
      x[i] = kept + step;
      const double up = loss();
      x[i] = kept - step;
      found[i] = (up - loss()) / (2 * step);
      x[i] = kept;
    }
    return found;
  }
  /// The gradients of gamma and beta.
  std::pair<std::vector<double>, std::vector<double>> ofParams(
      const std::vector<double>& x, const std::vector<double>& grads) const {
    const auto y = whitened(x);
    std::vector<double> g(c, 0), b(c, 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      g[i / f % c] += grads[i] * y[i];
      b[i / f % c] += grads[i];
    }
    return {g, b};
  }
};

std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

/// Compares the next elements of `found` from `at` on.
void take(const std::vector<float>& found, std::size_t& at, const std::vector<double>& wanted) {
  for (const double x : wanted) CHECK_NEAR(found[at++], x, 2e-3 * (1 + std::abs(x)));
}

/// A layer's results: mean, invStdDev, output, whitened, and gradients of gamma, beta and acts, the
/// last two pairs from activations and from whitened ones.
using Layer = std::function<std::vector<Tensor>(Fixture&, Tensor, Tensor, Tensor, Tensor)>;

void checkLayer(std::mt19937& random, Reference reference, const Layer& layer) {
  const auto [n, c, f] = std::tuple{reference.n, reference.c, reference.f};
  const auto x = randomFloats(random, n * c * f), grads = randomFloats(random, n * c * f),
             gamma = randomFloats(random, c), beta = randomFloats(random, c);
  reference.gamma = wide(gamma), reference.beta = wide(beta);
  Fixture fixture;
  const auto results = layer(
      fixture, fixture.constant<float>({n, c, f}, x), fixture.constant<float>({n, c, f}, grads),
      fixture.constant<float>({c}, gamma), fixture.constant<float>({c}, beta));
  std::vector<Tensor> flat;
  for (const Tensor& t : results) flat.push_back(t.flatten());
  const auto found = fixture.run(concat(flat));
  const auto params = reference.ofParams(wide(x), wide(grads));
  const auto gradient = reference.gradient(wide(x), wide(grads));
  std::size_t at = 0;
  take(found, at, reference.mean(wide(x)));
  take(found, at, reference.inverse(wide(x)));
  take(found, at, reference.output(wide(x)));
  take(found, at, reference.whitened(wide(x)));
  for (int i = 0; i < 2; ++i) {
    take(found, at, params.first);
    take(found, at, params.second);
    if (!reference.unbiased)
      take(found, at, gradient);  // the SDK's gradient is of the biased one
    else
      at += gradient.size();
  }
  CHECK_EQ(at, found.size());
}

#define LAYER(ns, name, ...)                                                                      \
  [=](Fixture& f, const Tensor& x, const Tensor& g, const Tensor& gamma, const Tensor& beta) {    \
    const auto [mean, inverse] =                                                                  \
        popnn::ns::name##NormStatistics(f.graph, x, kEps, f.prog, __VA_ARGS__, FLOAT, {}, flags); \
    const auto [y, white] =                                                                       \
        popnn::ns::name##Normalise(f.graph, x, gamma, beta, mean, inverse, f.prog, {}, flags);    \
    const auto a = popnn::ns::name##NormParamGradients(f.graph, x, g, mean, inverse, f.prog,      \
                                                       FLOAT, {}, flags);                         \
    const auto b =                                                                                \
        popnn::ns::name##NormParamGradients(f.graph, white, g, f.prog, FLOAT, {}, flags);         \
    const Tensor c = popnn::ns::name##NormGradients(f.graph, x, g, mean, inverse, gamma, f.prog,  \
                                                    FLOAT, {}, flags);                            \
    const Tensor d = popnn::ns::name##NormGradients(f.graph, white, g, inverse, gamma, f.prog,    \
                                                    FLOAT, {}, flags);                            \
    return std::vector<Tensor>{                                                                   \
        mean, inverse, y, white, a.first, a.second, c, b.first, b.second, d};                     \
  }

}  // namespace

TEST(normalisations_and_their_gradients) {
  std::mt19937 random(1);
  for (int round = 0; round < 8; ++round) {
    const bool unbiased = round & 1, stable = round & 2;
    const unsigned groups = 1 + random() % 3;
    const std::size_t n = 2 + random() % 3, c = groups * (1 + random() % 3), f = 2 + random() % 3;
    const OptionFlags flags;
    checkLayer(random, {n, c, f, c, [](auto, auto j) { return j; }, unbiased, {}, {}},
               LAYER(bn, batch, unbiased, stable));
    checkLayer(random, {n, c, f, n, [](auto i, auto) { return i; }, unbiased, {}, {}},
               LAYER(ln, layer, unbiased, stable));
    checkLayer(random,
               {n, c, f, n * c, [=](auto i, auto j) { return i * c + j; }, unbiased, {}, {}},
               LAYER(in, instance, unbiased, stable));
    checkLayer(random,
               {n,
                c,
                f,
                n * groups,
                [=](auto i, auto j) { return i * groups + j % groups; },
                unbiased,
                {},
                {}},
               LAYER(gn, group, groups, unbiased, stable));
    const OptionFlags contiguous{{"groupNormStridedChannelGrouping", "false"}};
    const auto block = c / groups;
    const auto layer = [&] {
      const OptionFlags& flags = contiguous;
      return LAYER(gn, group, groups, unbiased, stable);
    }();
    checkLayer(random,
               {n,
                c,
                f,
                n * groups,
                [=](auto i, auto j) { return i * groups + j / block; },
                unbiased,
                {},
                {}},
               layer);
  }
}

TEST(normalisation_over_replicas_adds_their_sums) {
  std::mt19937 random(2);
  for (const bool stable : {false, true}) {
    const auto x = randomFloats(random, 12), grads = randomFloats(random, 12);
    Fixture f;
    const Tensor acts = f.constant<float>({2, 2, 3}, x), g = f.constant<float>({2, 2, 3}, grads),
                 gamma = f.constant<float>({2}, {1.5f, -2});
    // Two more replicas with the same batch: three times each sum, and the statistics of one.
    unsigned calls = 0;
    const poplin::DistributedNormReduceCallback callback =
        [&](Graph& graph, const std::vector<Tensor>& inputs, Sequence& prog, unsigned group,
            const DebugContext&, const OptionFlags&) {
          CHECK_EQ(group, 3u);
          ++calls;
          std::vector<Tensor> sums;
          for (const Tensor& t : inputs) sums.push_back(popops::mul(graph, t, 3.0f, prog));
          return sums;
        };
    const auto all = popnn::bn::distributedBatchNormStatistics(f.graph, acts, kEps, f.prog, false,
                                                               callback, 6, stable);
    CHECK_EQ(calls, stable ? 2u : 1u);
    const auto one = popnn::bn::batchNormStatistics(f.graph, acts, kEps, f.prog, false, stable);
    const Tensor a = popnn::bn::distributedBatchNormGradients(
        f.graph, acts, g, one.first, one.second, gamma, f.prog, callback, 6);
    const Tensor b =
        popnn::bn::batchNormGradients(f.graph, acts, g, one.first, one.second, gamma, f.prog);
    const auto found =
        f.run(concat({all.first, all.second, a.flatten(), one.first, one.second, b.flatten()}));
    for (std::size_t i = 0; i < 16; ++i) CHECK_NEAR(found[i], found[16 + i], 1e-4);
    CHECK_THROWS(poplin::distributedNormStatistics(f.graph, acts, kEps, f.prog, false, callback, 3),
                 "multiple of the 2");
  }
}

TEST(normalisation_of_halves_sums_in_floats) {
  Fixture f;
  const std::size_t n = 4096;  // 4096 * 30 is not a half
  const Tensor x = f.constant<float>({n, 1}, std::vector<float>(n, 30.0f), HALF);
  const auto [mean, inverse] = poplin::normStatistics(f.graph, x, 1, f.prog, true);
  CHECK_EQ(mean.elementType(), HALF);
  const Tensor white = poplin::normWhiten(f.graph, x, mean, inverse, f.prog);
  CHECK_EQ(white.elementType(), HALF);
  const auto found = f.run<float>(
      popops::cast(f.graph, concat({mean, inverse, white.flatten().slice(0, 2)}), FLOAT, f.prog));
  CHECK_NEAR(found[0], 30, 1e-2);
  CHECK_NEAR(found[1], 1, 1e-2);
  CHECK_NEAR(found[3], 0, 1e-2);
}

TEST(norm_parameters_are_updated) {
  Fixture f;
  const Tensor acts = f.variable("acts", {2, 3, 4});
  const auto [made, other] = popnn::createNormParams(f.graph, acts);
  CHECK(made.shape() == (std::vector<std::size_t>{3}) && other.elementType() == FLOAT);
  CHECK_EQ(poplin::createNormGamma(f.graph, acts, HALF).elementType(), HALF);
  Tensor gamma = f.constant<float>({3}, {1, 2, 3}), beta = f.constant<float>({3}, {4, 5, 6});
  const Tensor delta = f.constant<float>({3}, {10, 20, 30}), scale = f.constant<float>({}, {-0.1f});
  popnn::bn::batchNormParamUpdate(f.graph, delta, delta, 0.5f, gamma, beta, f.prog);
  popnn::ln::layerNormParamUpdate(f.graph, delta, delta, scale, gamma, beta, f.prog);
  const Tensor combined =
      popnn::bn::batchNormalise(f.graph, delta.expand({0}), gamma, beta, f.prog);
  const auto found = f.run(concat({gamma, beta, combined.flatten()}));
  const std::vector<double> wanted{5, 10, 15, 8, 13, 18, 58, 213, 468};
  for (std::size_t i = 0; i < 9; ++i) CHECK_NEAR(found[i], wanted[i], 1e-3);
  CHECK_EQ(popnn::getNormFwdFlops(3, 24), 138u);
  CHECK_EQ(popnn::getNormFwdFlops(3, 24, false), 48u);
  CHECK(popnn::getNormBwdFlops(3, 24) > popnn::getNormWuFlops(3, 24));
  CHECK_THROWS(popnn::gn::groupNormStatistics(f.graph, acts, 0, f.prog, 2, false), "multiple");
  CHECK_THROWS(popnn::gn::groupNormStatistics(f.graph, acts, 0, f.prog, 3, false, false, FLOAT, {},
                                              {{"strided", "true"}}),
               "groupNormStridedChannelGrouping");
  CHECK_THROWS(poplin::normWhiten(f.graph, acts, scale.expand({0}), gamma, f.prog), "3 channels");
}

TEST(groups_without_elements_have_a_mean_of_zero) {
  using Shape = std::vector<std::size_t>;
  for (const auto& shape : {Shape{0, 3, 0}, Shape{1, 3, 0}, Shape{1, 0, 3}, Shape{3, 3, 0}}) {
    Fixture f(1);
    const Tensor acts = f.graph.addVariable(FLOAT, shape, VariableMappingMethod::LINEAR);
    const auto [mean, inverse] =
        popnn::gn::groupNormStatistics(f.graph, acts, 0.25F, f.prog, 1, false);
    CHECK_EQ(mean.numElements(), shape[0]);
    if (shape[0] == 0) continue;  // nothing to read
    const auto got = f.run(concat(mean, inverse));
    for (std::size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], i < shape[0] ? 0.0F : 2.0F);
  }
}
