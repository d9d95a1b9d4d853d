#include <algorithm>
#include <random>

#include "Check.hpp"
#include "poplar/CSRFunctions.hpp"
#include "poplar/Graph.hpp"
#include "popnn/CTCLoss.hpp"
#include "popnn/internal/CTCCost.hpp"
#include "popnn/internal/Fused.hpp"
#include "popx/CtcLoss.hpp"

using namespace popnn::internal;

namespace {

constexpr double kWorkers = 6;

/// The compute cycles that PopLibs' planner counts, from its figures for a symbol and the blank
/// next to it: 44 cycles, 84 with the gradient, and 17 or 34 for the last blank.
double computeOf(const CtcSizes& s, const CtcPartition& by) {
  const auto up = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  const std::uint64_t labels = up(s.labels, by.labels), time = up(s.time, by.time);
  const bool blank = labels == s.labels / by.labels;
  const double turns = static_cast<double>(up(up(s.batch, by.batch), 6));
  const double steps = static_cast<double>(time * (by.time % 2 ? by.time + 1 : by.time)) / 2;
  double cycles = static_cast<double>(labels) * 44 + (blank ? 17 : 0);
  if (s.gradient) cycles += static_cast<double>(labels) * 84 + (blank ? 34 : 0);
  return kWorkers * turns * steps * cycles;
}

double bytesOf(const CtcSizes& s, const CtcPartition& by) {
  const auto up = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  return static_cast<double>((s.gradient ? 2 : 1) * 4 * up(s.batch, by.batch) *
                             up(s.time, by.time) * s.classes);
}

}  // namespace

TEST(ctc_steps_have_the_cycles_of_poplibs) {
  CHECK_EQ(ctcStepCycles(1, false, false), std::uint64_t{44});
  CHECK_EQ(ctcStepCycles(1, false, true), std::uint64_t{84});
  CHECK_EQ(ctcStepCycles(5, true, false), std::uint64_t{5 * 44 + 17});
  CHECK_EQ(ctcStepCycles(5, true, true), std::uint64_t{5 * 84 + 34});
}

TEST(ctc_plans_are_near_the_best_of_all_partitions) {
  const poplar::Target target;
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const CtcSizes sizes{1 + random() % 40, 1 + random() % 9, 2 + random() % 50, random() % 12,
                         round % 2 == 0};
    const CtcPartition found = ctcPartition(target, sizes);
    CHECK(found.tiles() <= target.getNumTiles());
    CHECK(bytesOf(sizes, found) < 0.6 * static_cast<double>(target.getBytesPerTile()));
    double best = computeOf(sizes, found);
    for (std::uint64_t b = 1; b <= sizes.batch; ++b)
      for (std::uint64_t l = 1; l <= std::max<std::uint64_t>(sizes.labels, 1); ++l)
        for (std::uint64_t t = 1; t <= sizes.time && b * l * t <= target.getNumTiles(); ++t)
          best = std::min(best, computeOf(sizes, {b, l, t}));
    CHECK(computeOf(sizes, found) <= 1.25 * best);  // exchange counts too
  }
}

TEST(ctc_losses_cost_what_their_steps_do) {
  const poplar::Target target;
  for (const CtcSizes& sizes : {CtcSizes{128, 16, 32, 24, true}, CtcSizes{128, 16, 32, 24, false},
                                CtcSizes{37, 3, 900, 5, true}, CtcSizes{600, 64, 40, 80, true}}) {
    const CtcPartition by = ctcPartition(target, sizes);
    const auto cost = ctcLossCost(target, sizes, false);
    const double compute = computeOf(sizes, by);
    CHECK(cost.compute_cycles >= compute);
    CHECK(cost.compute_cycles <= 1.3 * compute + 2000);  // launches; likelihoods; sums of gradients
  }
}

TEST(ctc_plans_that_cannot_fit_take_the_least_memory) {
  const CtcSizes sizes{4000, 512, 4000, 50, true};
  const poplar::Target target;
  CHECK(ctcLossCost(target, sizes, true).temporary_bytes > target.getBytesPerTile());
}

TEST(ctc_gradients_cost_more_than_losses_and_both_less_than_their_composition) {
  const auto costOf = [](bool gradient, bool traps) {
    poplar::Graph graph{poplar::Target()};
    poplar::program::Sequence prog;
    poplar::setFloatingPointBehaviour(graph, prog, {traps, false, false, false, false});
    const auto variable = [&](const poplar::Type& type, const std::vector<std::size_t>& shape) {
      return graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR);
    };
    const auto plan = popnn::ctc::plan(graph, poplar::FLOAT, poplar::FLOAT, 4, 32, 6, 8);
    const auto data = variable(poplar::FLOAT, {32, 4, 8}),
               labels = variable(poplar::UNSIGNED_INT, {4, 6}),
               lengths = variable(poplar::UNSIGNED_INT, {4}),
               counts = variable(poplar::UNSIGNED_INT, {4});
    if (gradient)
      popnn::ctc::calcLossAndGradientLogProbabilities(graph, poplar::FLOAT, data, labels, lengths,
                                                      counts, prog, 0, plan);
    else
      popx::ctcLoss(graph, poplar::FLOAT, data, labels, lengths, counts, prog, 0, plan, false);
    return costOfProgram(prog).cycles();
  };
  CHECK(costOf(false, false) < costOf(true, false));
  CHECK(costOf(false, false) < costOf(false, true));
  CHECK(costOf(true, false) < costOf(true, true));
}
