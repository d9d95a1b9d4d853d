#pragma once
#include <cstdint>

#include "engine/FloatBehaviour.hpp"
#include "engine/expr/ExprProgram.hpp"

namespace ipujax::engine::expr {

/// The program with the rounding of its HALF results written out as float operations. One that
/// rounds at random has two more inputs behind its own, kUInt32: the words of a key, on which its
/// random bits depend, beside the number of an element and the stream of a result. That is what
/// ExprBuilder::setStream said, or else `stream`, which is moved on.
ExprProgram withHalfRounding(const ExprProgram& program, const HalfBehaviour& behaviour,
                             std::int64_t& stream);

}  // namespace ipujax::engine::expr
