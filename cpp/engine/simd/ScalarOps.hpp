#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/simd/MapOps.hpp"

/// Operations on single elements in memory as threaded code: each ends with a jump to the next one.
/// Loops of few elements are made of them (engine/loop/ScalarLoop.hpp).
namespace ipujax::engine {
struct LoopRun;  // engine/loop/LoopKernel.hpp
}

namespace ipujax::engine::simd {

struct ScalarOp {
  using Function = void (*)(const ScalarOp* op, LoopRun* run);
  Function function = nullptr;
  const std::byte* a = nullptr;  ///< operands, and `out` the result
  const std::byte* b = nullptr;
  const std::byte* c = nullptr;
  std::byte* out = nullptr;
  std::int64_t immediate = 0;
};

/// The last act of an operation; compilers make it a jump.
[[gnu::always_inline]] inline void next(const ScalarOp* op, LoopRun* run) {
  return op[1].function(op + 1, run);
}

/// *out = op(*a, *b, *c), bit for bit what findMap's loop gives; `out` may be an operand's memory.
/// Null where there is none: then that loop does it, for one element.
ScalarOp::Function findScalar(const MapKey& key);

}  // namespace ipujax::engine::simd
