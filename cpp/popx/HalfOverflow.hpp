#pragma once
#include <string>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

/// Sets what finite results beyond the largest half become, in steps added from now on: "infinity",
/// "saturate" or "nan". On hardware the last two set the tiles' NANOO bit (poplar::
/// setFloatingPointBehaviour, which also ends stochastic rounding), and "infinity", which tiles do
/// not have, leaves it unchanged. Throws poplar_error for other names.
void setHalfOverflow(poplar::Graph& graph, const std::string& behaviour,
                     poplar::program::Sequence& prog);

}  // namespace popx
