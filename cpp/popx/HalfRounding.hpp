#pragma once
#include <string>

#include "engine/expr/ExprProgram.hpp"
#include "poplar/GraphImpl.hpp"

namespace popx {

/// What finite results beyond the largest half become, in steps added from now on: "infinity",
/// "saturate" or "nan". On hardware the last two are the tiles' NANOO bit (see
/// poplar/CSRFunctions.hpp) and the first is not to be had. Throws poplar_error for other names.
void setHalfOverflow(poplar::Graph& graph, const std::string& behaviour);

/// The program with the rounding of its HALF results written out as float operations. `stream` is
/// the number of the first stream of random bits to use; it is moved on past the last.
ipujax::engine::expr::ExprProgram withHalfRounding(const ipujax::engine::expr::ExprProgram& program,
                                                   const poplar::HalfBehaviour& behaviour,
                                                   std::int64_t& stream);

}  // namespace popx
