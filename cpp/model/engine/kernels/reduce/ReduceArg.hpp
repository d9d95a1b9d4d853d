#pragma once
#include <cstdint>
#include <optional>

#include "engine/ElementType.hpp"
#include "engine/Reducer.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/Isa.hpp"

namespace ipujax::engine {

/// Recognises the body of jnp.argmax or argmin: keep the larger (smaller) value, the first of equal
/// ones, and NaN before all others. The program must have exactly that meaning.
std::optional<reduction::Reducer> argReducerOf(const expr::ExprProgram& body);

/// The smallest indices[r] where values[r] == *wanted, and the last such position; -1: none.
struct ArgMatch {
  std::int64_t index = 0;
  std::int64_t last = -1;
};
using ArgScan = ArgMatch (*)(const void* values, const void* indices, const void* wanted,
                             std::int64_t n);
struct ArgTable {
  ArgScan floats;  ///< float values, int32 indices
  ArgScan ints;    ///< 32-bit integers, int32 indices
};
IPUJAX_DECLARE_SIMD(extern const ArgTable kArgTable)

}  // namespace ipujax::engine
