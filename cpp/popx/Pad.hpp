#pragma once
#include <cstdint>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

/// stablehlo.pad: `low` and `high` elements of `value` (a one-element tensor of t's type) at the
/// edges, negative ones removing elements, and `interior` between neighbours. If nothing is added,
/// the result is a view of `t`. On tiles: a fill and a copy.
poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& value,
                   const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
                   const std::vector<std::int64_t>& interior, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext = {});

}  // namespace popx
