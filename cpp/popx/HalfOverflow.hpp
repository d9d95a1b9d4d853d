#pragma once
#include <string>

#include "popx/Native.hpp"

namespace popx {

/// What finite results beyond the largest half become, in steps added from now on: "infinity",
/// "saturate" or "nan". On hardware the last two are the tiles' NANOO bit (see
/// poplar/CSRFunctions.hpp) and the first is not to be had. Throws poplar_error for other names.
void setHalfOverflow(poplar::Graph& graph, const std::string& behaviour);

}  // namespace popx
