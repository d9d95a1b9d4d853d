#pragma once
// Cycles of popnn's vertices of non-linearities, for its functions and for the codelets of these
// vertices. Source: PopLibs, popnnCycleEstimators.cpp.
#include <cstdint>
#include <engine/ops/ElementwiseCycles.hpp>
#include <popnn/NonLinearityDef.hpp>

namespace popnn {
namespace nonlinearity {

/// Cycles of one element, and of one vector in the loop.
struct Rates {
  double scalar, vector, gradient;
};
constexpr Rates ratesOf(NonLinearityType type, bool is_half) {
  switch (type) {
    case NonLinearityType::SIGMOID:
      return is_half ? Rates{2, 4, 3} : Rates{5, 10, 3};
    case NonLinearityType::TANH:
      return is_half ? Rates{1, 2, 3} : Rates{5, 10, 3};
    case NonLinearityType::GELU:
      return is_half ? Rates{5, 5, 5} : Rates{10, 10, 10};
    case NonLinearityType::GELU_ERF:
      return is_half ? Rates{15, 15, 15} : Rates{30, 30, 30};
    case NonLinearityType::SWISH:
      return is_half ? Rates{3, 5, 8} : Rates{6, 11, 13};
    default:
      return {2, 2, 3};  // relu: our estimate after popops' vertex
  }
}

/// Cycles of one of `workers` that share n elements.
constexpr double workerCycles(NonLinearityType type, bool is_half, bool backward, unsigned workers,
                              std::uint64_t n) {
  const Rates rates = ratesOf(type, is_half);
  const std::uint64_t width = is_half ? 4 : 2;
  const std::uint64_t vectors = (n + width * workers - 1) / (width * workers);
  const double rest = n % width != 0 ? rates.scalar : 0;
  const double loop = static_cast<double>(vectors > 0 ? vectors - 1 : 0);
  return backward ? 24 + loop * rates.gradient + 1 + rest
                  : 20 + rates.scalar + loop * rates.vector + 3 + rest;
}

constexpr double vertexCycles(NonLinearityType type, bool is_half, bool backward, unsigned workers,
                              std::uint64_t n) {
  return ipujax::engine::expr::kSupervisorLaunchCycles + 9 +
         workers * workerCycles(type, is_half, backward, workers, n);
}

}  // namespace nonlinearity
}  // namespace popnn
