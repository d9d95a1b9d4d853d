#pragma once
#include "engine/expr/ExprProgram.hpp"

namespace ipujax::engine::expr {

/// The program with (x << a) | (x >> 32 - a) as one rotation: CPUs have an instruction for it, and
/// counter-based random numbers are made of little else.
ExprProgram withRotations(const ExprProgram& program);

}  // namespace ipujax::engine::expr
