#include "engine/kernels/VerifyStep.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/FloatBehaviour.hpp"
#include "engine/image/StepCheck.hpp"
#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {
namespace {

void verifyPair(const StepCheck& check, std::span<const Footprint> footprints, std::size_t i,
                std::size_t j) {
  const auto& operands = check.step().operands;
  if (operands[i].access == Access::kRead && operands[j].access == Access::kRead) return;
  if (areApart(footprints[i], footprints[j])) return;
  if (!check.mayShare(i, j) || !isSame(footprints[i], footprints[j]))
    check.refuse("operands that do not overlap; " + std::to_string(i) + " and " +
                 std::to_string(j) + " do");
}

/// Checks that written operands overlap only operands that they may replace.
void verifyOverlaps(const StepCheck& check, std::span<const Footprint> footprints) {
  constexpr std::size_t kFew = 16;
  if (footprints.size() <= kFew) {
    for (std::size_t i = 0; i < footprints.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) verifyPair(check, footprints, i, j);
    return;
  }
  std::vector<std::size_t> order(footprints.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::pair(footprints[i].space, footprints[i].begin);
  });
  for (std::size_t x = 0; x < order.size(); ++x) {
    const Footprint& a = footprints[order[x]];
    for (std::size_t y = x + 1; y < order.size(); ++y) {
      const Footprint& b = footprints[order[y]];
      if (b.space != a.space || b.begin >= a.end) break;
      verifyPair(check, footprints, order[x], order[y]);
    }
  }
}

}  // namespace

void verifyStep(const StepDesc& step, const Image& image, std::span<const Footprint> footprints) {
  StepCheck check(step, image);
  try {
    KernelRegistry::instance().check(check);
    if (step.attributes.has(kFloatTraps)) check.integer(kFloatTraps, 0, kAllFloatTraps);
  } catch (const ImageError&) {
    throw;
  } catch (const std::exception& e) {  // a missing attribute, an invalid expression
    check.refuse(std::string("what its kernel declares: ") + e.what());
  }
  if (!check.mayOverlap()) verifyOverlaps(check, footprints);
}

}  // namespace ipujax::engine
