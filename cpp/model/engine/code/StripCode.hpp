#pragma once
#include <cstdint>
#include <memory>

#include "engine/code/CodeMemory.hpp"
#include "engine/code/Strip.hpp"

namespace ipujax::engine::code {

/// Lanes of a vector on this CPU: 16 or 8; 0 where no code can be made.
std::int64_t stripLanes();

/// Code for `run(memory, n)`, where n is a multiple of stripLanes() and memory[i] is where the
/// program's memory i begins. Null if no code can be made. Programs with the same steps share it.
std::shared_ptr<const Code> stripCode(const StripProgram& program);

/// The bytes of the code for an instruction set, `wide` for AVX-512; for tests.
std::vector<std::uint8_t> stripBytes(const StripProgram& program, bool wide);

}  // namespace ipujax::engine::code
