#pragma once
#include <cstdint>

#include "engine/FloatBehaviour.hpp"
#include "engine/expr/ExprProgram.hpp"

namespace ipujax::engine::expr {

/// The program with the rounding of its HALF results written out as float operations. With
/// stochastic rounding it has two more inputs after its own, the kUInt32 words of a key. Its random
/// bits depend on the key, the number of an element and the stream of a result: the one set by
/// ExprBuilder::setStream, or else `stream`, which is advanced.
ExprProgram withHalfRounding(const ExprProgram& program, const HalfBehaviour& behaviour,
                             std::int64_t& stream);

}  // namespace ipujax::engine::expr
