#include <poplar/Engine.hpp>
#include <popops/PerformanceEstimation.hpp>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace popops::internal;
using popops::expr::BinaryOpType;

TEST(cycles_of_slices_and_updates_are_those_of_popLibs_estimators) {
  const Fixture f;
  const Target& target = f.graph.getTarget();
  CHECK_EQ(target.getNumWorkerContexts(), 6U);
  // Six workers: each finds 2 rows of 4 vectors here, and 2 of its 4 offsets elsewhere.
  const MultiSliceTargetParameters half(target, HALF);
  CHECK_EQ(getMultiSliceCycleEstimate(half, 16, 24, 2, 1), 6U * (30 + 2 * (19 + 2 * 4) + 2 * 8));
  CHECK_EQ(getMultiSliceCycleEstimate(half, 16, 24, 2, 1, true),
           6U * (29 + 2 * (19 + 2 * 4) + 2 * 8));
  // 20 cycles for each halving of sorted indices instead of checking each index.
  CHECK_EQ(getMultiSliceCycleEstimate(half, 16, 32, 2, 1, false, true),
           6U * (30 + 2 * (19 + 2 * 4) + 5 * 20));
  const MultiUpdateOpTargetParameters words(target, FLOAT);
  CHECK_EQ(getMultiUpdateOpCycleEstimate(words, false, 8, 24, 2, 1, popops::Operation::ADD, false),
           6U * (32 + 2 * (12 + 3 * 7) + 2 * 5));
  CHECK_EQ(getMultiUpdateOpCycleEstimate(words, true, 8, 24, 2, 1, popops::Operation::ADD, false),
           6U * (32 + 2 * 20 * 8 + 2 * 5));
  CHECK_EQ(getDynamicSlice1DEstimate(target, FLOAT, 24, 3), 25U + 6 * (39 + (24 + 2 * 2) * 3));
}

TEST(cycles_of_elementwise_vertices_grow_with_their_work) {
  const Fixture f;
  const Target& target = f.graph.getTarget();
  const CastTargetParameters cast(target, FLOAT, HALF);
  CHECK_EQ(getCast1DSingleWorkerCycleEstimate(cast, FLOAT, HALF, 400), 19U + 100 * 2);
  std::vector<unsigned> regions{400, 40};
  CHECK_EQ(getCast2DCycleEstimate(cast, FLOAT, HALF, regions), 19U + 110 * 2);
  CHECK(getCast1DCycleEstimate(cast, FLOAT, HALF, 6000) <
        getCast1DCycleEstimate(cast, HALF, FLOAT, 6000) * 2);
  const FillTargetParameters fill(target);
  CHECK_EQ(getFill2DCycleEstimate(fill, FLOAT, {64, 128}),
           getFill1DCycleEstimate(fill, FLOAT, 64) + getFill1DCycleEstimate(fill, FLOAT, 128));
  CHECK_EQ(getFill1DCycleEstimate(fill, FLOAT, 128) - getFill1DCycleEstimate(fill, FLOAT, 64), 32U);
  CHECK(getBinaryOp1DInPlaceEstimate(target, HALF, BinaryOpType::ADD, 6000) <
        getBinaryOp1DInPlaceEstimate(target, FLOAT, BinaryOpType::ADD, 6000));
  const auto one =
      broadcastArithmetic1DCycleEstimate(target, BinaryOpType::MULTIPLY, FLOAT, FLOAT, true, 600);
  CHECK_EQ(one.flops, 600U);
  CHECK_EQ(one.cycles, getBinaryOp1DInPlaceEstimate(target, FLOAT, BinaryOpType::MULTIPLY, 600));
  const auto rows = broadcastArithmeticCycleEstimate(target, BinaryOpType::MULTIPLY, FLOAT, FLOAT,
                                                     true, true, {100, 200});
  CHECK_EQ(rows.flops, 300U);
  const ScaledArithmeticTargetParameters scaled(target, HALF);
  const auto layout = layout::Vector::OnePtr;
  const auto axpy = [&](const Type& type, unsigned n) {
    return getScaledArithmeticSupervisorCycleEstimate(scaled, type, type, false, false,
                                                      ScaledArithmeticOp::ADD, layout, layout, n);
  };
  CHECK(axpy(HALF, 4096) < axpy(FLOAT, 4096));
}

TEST(engines_header_brings_the_half_of_the_host) {
  const TypeTraits traits = TypeTraits::make<IeeeHalf>();
  CHECK(traits.type == HALF);
  CHECK_EQ(traits.size, 2U);
  CHECK_EQ(static_cast<float>(IeeeHalf(1.5F)), 1.5F);
}
