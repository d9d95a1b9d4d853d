#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "Check.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplin/Norms.hpp"
#include "popnn/NonLinearity.hpp"
#include "popnn/internal/Fused.hpp"
#include "popops/Reduce.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "poputil/Util.hpp"

/// Cycles of popnn's vertices against the formulas of PopLibs' popnnCycleEstimators.cpp.
namespace {

using popnn::NonLinearityType;

/// A worker's cycles for one element and for a vector, forward, and for a vector of the gradient.
struct Formula {
  NonLinearityType type;
  std::uint64_t scalar[2], vector[2], gradient[2];  ///< float, half
};
constexpr Formula kFormulas[] = {
    {NonLinearityType::SIGMOID, {5, 2}, {10, 4}, {3, 3}},
    {NonLinearityType::TANH, {5, 1}, {10, 2}, {3, 3}},
    {NonLinearityType::GELU, {10, 5}, {10, 5}, {10, 5}},
    {NonLinearityType::GELU_ERF, {30, 15}, {30, 15}, {30, 15}},
};

/// T = 9 + 6 (20 + one + (v - 1) vectors + 3 + one more if the elements are not whole vectors);
/// the gradient's loop: 24 + (v - 1) vectors + 1.
std::uint64_t estimate(const Formula& f, std::uint64_t n, bool half, bool backward) {
  const std::uint64_t width = half ? 4 : 2, of_worker = (n + 6 * width - 1) / (6 * width);
  const std::uint64_t rest = n % width == 0 ? 0 : f.scalar[half];
  const std::uint64_t worker =
      backward ? 24 + (of_worker - 1) * f.gradient[half] + 1 + rest
               : 20 + f.scalar[half] + (of_worker - 1) * f.vector[half] + 3 + rest;
  return 9 + 6 * worker;
}

/// Compute cycles of a step on one tile with n elements.
double modelled(NonLinearityType type, std::uint64_t n, bool half, bool backward) {
  poplar::Graph graph{poplar::Target()};
  poplar::program::Sequence prog;
  const auto variable = [&] {
    const auto t = graph.addVariable(half ? poplar::HALF : poplar::FLOAT, {n});
    graph.setTileMapping(t, 0);
    return t;
  };
  if (backward)
    popnn::nonLinearityInputGradient(graph, type, variable(), variable(), prog);
  else
    popnn::nonLinearityInPlace(graph, type, variable(), prog);
  return popnn::internal::costOfProgram(prog).compute_cycles;
}

}  // namespace

TEST(non_linearities_have_the_cycles_of_poplibs) {
  for (const auto& formula : kFormulas)
    for (const bool half : {false, true})
      for (const bool backward : {false, true})
        for (const std::uint64_t n : {1, 2, 7, 24, 96, 500, 1000, 4097}) {
          const double wanted = static_cast<double>(estimate(formula, n, half, backward)) +
                                popops::elementwise::kSupervisorLaunchCycles;
          CHECK_EQ(modelled(formula.type, n, half, backward), wanted);
        }
}

namespace {

/// A broadcast of a value for each of `rows` over `columns`: 11 + 6 (15 + rows (7 + 2 vectors)).
double broadcastEstimate(std::uint64_t rows, std::uint64_t columns, bool half) {
  const std::uint64_t width = half ? 4 : 2, vectors = (columns + 6 * width - 1) / (6 * width);
  return static_cast<double>(11 + 6 * (15 + rows * (7 + 2 * vectors)));
}

}  // namespace

/// PopLibs uses two vertices for each, a difference or sum and a product; here it is one map.
TEST(norms_are_applied_in_about_the_cycles_of_poplibs) {
  for (const bool half : {false, true})
    for (const std::size_t channels : {1, 4, 16})
      for (const std::size_t field : {96, 600, 2400}) {
        poplar::Graph graph{poplar::Target()};
        const auto variable = [&](const std::vector<std::size_t>& shape) {
          const auto t = graph.addVariable(half ? poplar::HALF : poplar::FLOAT, shape);
          graph.setTileMapping(t, 0);
          return t;
        };
        const auto acts = variable({1, channels, field}), a = variable({channels}),
                   b = variable({channels});
        poplar::program::Sequence whiten, normalise;
        poplin::normWhiten(graph, acts, a, b, whiten);
        poplin::normalise(graph, acts, a, b, normalise);
        const double wanted = 2 * broadcastEstimate(channels, field, half);
        for (const auto* prog : {&whiten, &normalise}) {
          const double found = popnn::internal::costOfProgram(*prog).compute_cycles;
          CHECK(found > 0.5 * wanted);
          CHECK(found < 1.5 * wanted);
        }
      }
}

/// Reductions that scale their results, and one vertex InverseStdDeviation for each worker: 6 + the
/// sum over its regions of 4 + 5 for each pair of elements.
TEST(norm_statistics_have_the_cycles_of_poplibs) {
  for (const bool half : {false, true})
    for (const bool stable : {false, true})
      for (const std::size_t channels : {1, 3, 16, 64, 256, 1600}) {
        poplar::Graph graph{poplar::Target::createIPUTarget(1, 4, "ipu2")};
        const auto type = half ? poplar::HALF : poplar::FLOAT;
        const auto acts = graph.addVariable(type, {2, channels, 8},
                                            poplar::VariableMappingMethod::LINEAR, "acts");
        poplar::program::Sequence statistics, sums;
        const auto inverse =
            poplin::normStatistics(graph, acts, 1e-3f, statistics, false, stable).second;
        const auto scale = graph.addConstant(poplar::FLOAT, {}, 0.5f);
        graph.setTileMapping(scale, 0);
        popops::reduce(graph, acts, type, {0, 2}, {popops::Operation::ADD, false, scale}, sums);
        popops::reduce(graph, acts, poplar::FLOAT, {0, 2},
                       {popops::Operation::SQUARE_ADD, false, scale}, sums);
        std::uint64_t worst = 0;
        const unsigned grain = graph.getTarget().getVectorWidth(type);
        for (const auto& regions : graph.getTileMapping(inverse))
          for (const auto& of_worker :
               poputil::splitRegionsBetweenWorkers(graph.getTarget(), regions, grain, 2 * grain)) {
            std::uint64_t cycles = 6;
            for (const auto& region : of_worker) cycles += 4 + 5 * ((region.size() + 1) / 2);
            worst = std::max(worst, cycles);
          }
        const double found = popnn::internal::costOfProgram(statistics).compute_cycles -
                             popnn::internal::costOfProgram(sums).compute_cycles;
        const double wanted = 11 + 6 * static_cast<double>(worst);
        if (stable) {
          CHECK(found > wanted);  // the mean is subtracted from the activations
        } else {
          CHECK_EQ(found, wanted);
        }
      }
}
