#pragma once
#include <cstdint>

#include "poplar/Graph.hpp"

namespace popx {

enum class VariableUse : std::uint8_t { kTemporary, kAccumulator, kStash };

/// Says what the variables of a tensor are for: the account of memory counts accumulators and the
/// stash of a pipeline apart from temporaries. Results and time do not depend on it,
/// and on hardware it does nothing.
void setVariableUse(poplar::Graph& graph, const poplar::Tensor& t, VariableUse use);

}  // namespace popx
