#include <poplar/Engine.hpp>
#include <poplin/Convolution.hpp>
#include <random>
#include <string>
#include <vector>

#include "Check.hpp"
#include "Fixture.hpp"

// Weights of convolutions that read them in slices of the output channels, one after another.
using namespace poplar;
using poplin::ConvParams;

namespace {

constexpr unsigned kTiles = 16;

OptionFlags inSlices(unsigned slices) {
  return {{"planConstraints", R"({"0": {"partition": {"outChanSplit": {"serial": )" +
                                  std::to_string(slices) + "}}}}"}};
}

ConvParams paramsOf(std::size_t channels, std::size_t groups) {
  return {FLOAT, 2, {6, 6}, {3, 3}, 8, channels, groups};
}

bool areAllMappedAlike(const Graph& graph, const Tensor& weights, unsigned slices) {
  const std::size_t each = weights.dim(1) / slices;
  const auto first = graph.getTileMapping(weights.slice(0, each, 1));
  for (std::size_t s = 1; s < slices; ++s)
    if (graph.getTileMapping(weights.slice(s * each, (s + 1) * each, 1)) != first) return false;
  return true;
}

double exchangeOf(Fixture& f) {
  const Engine engine(f.graph, f.prog);
  return engine.getGraphProfile()["longestProgram"]["exchangeBytes"].asDouble();
}

}  // namespace

TEST(slices_of_weights_lie_on_the_same_tiles) {
  for (const std::size_t groups : {1U, 2U}) {
    for (const unsigned slices : {1U, 2U, 4U}) {
      Fixture f(kTiles);
      const auto weights =
          poplin::createWeights(f.graph, paramsOf(16, groups), "weights", inSlices(slices));
      CHECK(weights.shape() == (std::vector<std::size_t>{groups, 16, 8, 3, 3}));
      CHECK(areAllMappedAlike(f.graph, weights, slices));
    }
  }
}

TEST(a_convolution_of_slices_moves_no_weights_that_were_made_for_it) {
  const ConvParams params = paramsOf(64, 1);
  double exchanged[2];
  for (const bool made : {true, false}) {
    Fixture f(kTiles);
    const auto options = inSlices(4);
    const auto in = poplin::createInput(f.graph, params, "in", options);
    auto weights = poplin::createWeights(f.graph, params, "weights", options);
    if (!made) f.graph.setTileMapping(weights, 0);
    poplin::convolution(f.graph, in, weights, params, false, f.prog, "conv", options);
    exchanged[made ? 0 : 1] = exchangeOf(f);
  }
  CHECK(exchanged[0] < exchanged[1]);
}

TEST(a_convolution_of_slices_has_the_values_of_one_without) {
  std::mt19937 random(4);
  const ConvParams params = paramsOf(16, 2);
  const auto values = randomFloats(random, 2 * 16 * 36),
             taps = randomFloats(random, 2 * 16 * 8 * 9);
  std::vector<float> found[2];
  for (const unsigned slices : {1U, 4U}) {
    Fixture f(kTiles);
    const auto options = inSlices(slices);
    const auto in = poplin::createInput(f.graph, params, "in", options);
    const auto weights = poplin::createWeights(f.graph, params, "weights", options);
    f.graph.setInitialValue<float>(in, values);
    f.graph.setInitialValue<float>(weights, taps);
    found[slices == 1] =
        f.run(poplin::convolution(f.graph, in, weights, params, false, f.prog, "conv", options));
  }
  for (std::size_t i = 0; i < found[0].size(); ++i) CHECK_NEAR(found[0][i], found[1][i], 1e-4);
}
