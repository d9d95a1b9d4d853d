#pragma once
#include <cstdint>

namespace ipujax::engine::expr {

/// Every elementwise operation the model knows: the rows of ElementwiseOps.def, which are all that
/// an operation needs.
enum class Op : std::uint8_t {
#define OP(Name, ...) k##Name,
#include "engine/ops/ElementwiseOps.def"
  kCount,
};
constexpr int kOpCount = static_cast<int>(Op::kCount);

enum OpTraits : std::uint8_t {
  kPlain = 0,
  kKeepsHalves = 1,  ///< the result is a half without rounding when the operands are
  kCommutative = 2,
  kGivesBool = 4,
  kHasImmediate = 8,
};
bool has(Op op, OpTraits trait);

const char* nameOf(Op op);
int numOperands(Op op);

}  // namespace ipujax::engine::expr
