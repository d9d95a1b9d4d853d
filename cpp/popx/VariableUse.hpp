#pragma once
#include <cstdint>

#include "poplar/Graph.hpp"

namespace popx {

enum class VariableUse : std::uint8_t { kTemporary, kAccumulator, kStash };

/// Sets what the variables of a tensor are for: memory reports count accumulators and the stash of
/// a pipeline separately from temporaries. Results and time do not depend on it, and on hardware it
/// does nothing.
void setVariableUse(poplar::Graph& graph, const poplar::Tensor& t, VariableUse use);

}  // namespace popx
