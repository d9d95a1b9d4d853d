#pragma once
#include <cstdint>

#include "engine/expr/ExprProgram.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine::expr {

/// The program with the rounding of its HALF results written out as float operations. `stream` is
/// the number of the first stream of random bits to use; it is moved on past the last.
ExprProgram withHalfRounding(const ExprProgram& program, const HalfBehaviour& behaviour,
                             std::int64_t& stream);

}  // namespace ipujax::engine::expr
