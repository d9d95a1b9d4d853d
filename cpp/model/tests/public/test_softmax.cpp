#include <cmath>
#include <popnn/LogSoftmax.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/NonLinearityDefUtil.hpp>
#include <popnn/SpatialSoftMax.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;
using popnn::NonLinearityType;

namespace {

std::vector<double> softmax(const std::vector<float>& x, std::size_t classes) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += classes) {
    double sum = 0;
    for (std::size_t i = row; i < row + classes; ++i) sum += y[i] = std::exp(double{x[i]});
    for (std::size_t i = row; i < row + classes; ++i) y[i] /= sum;
  }
  return y;
}

constexpr NonLinearityType kSoftmaxes[] = {
    NonLinearityType::SOFTMAX, NonLinearityType::SOFTMAX_STABLE, NonLinearityType::SOFTMAX_SCALED};

}  // namespace

TEST(softmax_types_normalise_the_last_dimension) {
  std::mt19937 random(1);
  for (const NonLinearityType type : kSoftmaxes) {
    for (int round = 0; round < 4; ++round) {
      const std::size_t a = 1 + random() % 3, b = 1 + random() % 3, classes = 1 + random() % 20;
      const auto x = randomFloats(random, a * b * classes), g = randomFloats(random, x.size());
      const auto y = softmax(x, classes);
      Fixture f;
      const Tensor in = f.constant<float>({a, b, classes}, x),
                   grads = f.constant<float>({a, b, classes}, g);
      float scaling = 0, again = 0;
      const Tensor out = popnn::nonLinearity(f.graph, type, in, scaling, f.prog);
      const Tensor probabilities =
          popops::map(f.graph, popops::expr::_1 * (1 / scaling), {out}, f.prog);
      const Tensor slope =
          popnn::nonLinearityInputGradient(f.graph, type, probabilities, grads, f.prog);
      ComputeSet cs = f.graph.addComputeSet("softmax");
      popnn::nonLinearityInPlace(f.graph, type, in, again, cs);
      f.prog.add(Execute(cs));
      CHECK_EQ(scaling, type == NonLinearityType::SOFTMAX_SCALED ? 16384.0f : 1.0f);
      CHECK_EQ(scaling, again);
      const auto found = f.run(concat({out.flatten(), slope.flatten(), in.flatten()}));
      const std::size_t n = x.size();
      for (std::size_t i = 0; i < n; ++i) {
        CHECK_NEAR(found[i] / scaling, y[i], 1e-5);
        CHECK_EQ(found[2 * n + i], found[i]);
        double sum = 0;
        for (std::size_t j = i / classes * classes; j < (i / classes + 1) * classes; ++j)
          sum += g[j] * y[j];
        CHECK_NEAR(found[n + i], y[i] * (g[i] - sum), 1e-5);
      }
    }
  }
}

TEST(stable_softmax_has_no_overflow) {
  Fixture f;
  const Tensor x = f.constant<float>({2, 2}, {1000, 1000, -1000, 1000});
  const auto found = f.run(concat({popnn::softmaxStable(f.graph, x, f.prog).flatten(),
                                   popnn::logSoftmax(f.graph, x, f.prog).flatten(),
                                   popnn::softmax(f.graph, x, f.prog)[0]}));
  CHECK_NEAR(found[0], 0.5, 1e-6);
  CHECK_NEAR(found[3], 1, 1e-6);
  CHECK_NEAR(found[5], std::log(0.5), 1e-5);
  CHECK_NEAR(found[6], -2000, 1e-3);
  CHECK(!std::isfinite(found[8]));
}

TEST(log_softmax_is_the_logarithm) {
  std::mt19937 random(2);
  for (const Type type : {FLOAT, HALF}) {
    const auto x = randomFloats(random, 60);
    Fixture f;
    const Tensor in = f.constant<float>({2, 3, 10}, x, type);
    const Tensor out = popnn::logSoftmax(f.graph, in, f.prog);
    popnn::logSoftmaxInPlace(f.graph, in, f.prog);
    const Tensor both = concat(out.flatten(), in.flatten());
    const auto found = f.run(popops::cast(f.graph, both, FLOAT, f.prog));
    const auto y = softmax(x, 10);
    for (std::size_t i = 0; i < 60; ++i) {
      CHECK_NEAR(found[i], std::log(y[i]), type == HALF ? 1e-2 : 1e-5);
      CHECK_EQ(found[60 + i], found[i]);
    }
  }
  Fixture f;
  CHECK_THROWS(popnn::logSoftmax(f.graph, f.constant<int>({2}, {1, 2}), f.prog), "FLOAT or HALF");
}

TEST(spatial_softmax_finds_the_centres) {
  std::mt19937 random(3);
  for (const bool disabled : {false, true}) {
    const std::size_t n = 3, h = 4, w = 5;
    const float temperature = 0.7f;
    auto x = randomFloats(random, n * h * w);
    Fixture f;
    const auto [means, tau] = popnn::spatialSoftMax2D(
        f.graph, f.prog, f.constant<float>({n, h, w}, x), temperature, disabled);
    CHECK(tau.shape().empty());
    CHECK(means.shape() == (std::vector<std::size_t>{n, 2}));
    const auto found = f.run(concat(means.flatten(), tau.expand({0})));
    CHECK_EQ(found.back(), temperature);
    for (auto& v : x) v /= temperature;
    const auto weights = disabled ? std::vector<double>(x.begin(), x.end()) : softmax(x, n * h * w);
    for (std::size_t i = 0; i < n; ++i) {
      double y_mean = 0, x_mean = 0;
      for (std::size_t j = 0; j < h * w; ++j) {
        const double weight = weights[i * h * w + j];
        y_mean += weight * (2.0 * static_cast<double>(j / w) / (h - 1) - 1);
        x_mean += weight * (2.0 * static_cast<double>(j % w) / (w - 1) - 1);
      }
      CHECK_NEAR(found[2 * i], y_mean, 1e-4);
      CHECK_NEAR(found[2 * i + 1], x_mean, 1e-4);
    }
  }
}

TEST(non_linearities_have_names) {
  for (int i = 0; i <= static_cast<int>(NonLinearityType::SOFTMAX_SCALED); ++i) {
    const auto type = static_cast<NonLinearityType>(i);
    const std::string name = poputil::templateVertex("V", type);
    std::string word = name.substr(name.rfind(':') + 1);
    word.pop_back();
    for (auto& c : word) c = static_cast<char>(std::tolower(c));
    NonLinearityType read{};
    std::istringstream(word) >> read;
    CHECK(read == type);
    std::ostringstream out;
    out << type;
    CHECK_EQ(out.str()[0], word[0]);
  }
  NonLinearityType read{};
  CHECK_THROWS(std::istringstream("step") >> read, "step");
}
