#pragma once
#include <cstdint>
#include <functional>

#include "poplar/Target.hpp"
#include "poplar/VertexIntrospector.hpp"

namespace poplar {

/// Cost of a vertex: cycles of its worker, and arithmetic operations.
struct VertexPerfEstimate {
  VertexPerfEstimate() = default;
  VertexPerfEstimate(std::uint64_t cycles, std::uint64_t flops = 0)  // NOLINT: as in the SDK
      : cycles(cycles), flops(flops) {}
  std::uint64_t cycles = 0;
  std::uint64_t flops = 0;
};

using PerfEstimateFunc =
    std::function<VertexPerfEstimate(const VertexIntrospector& v, const Target& target)>;

}  // namespace poplar
