#pragma once
#include "popx/Native.hpp"

namespace popx {

using native::VariableUse;

/// Says what the variables of a tensor are for: the account of memory counts accumulators and the
/// stash of a pipeline apart from temporaries. Results and time do not depend on it.
void setVariableUse(poplar::Graph& graph, const poplar::Tensor& t, VariableUse use);

}  // namespace popx
