#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "engine/ElementType.hpp"
#include "engine/code/Strip.hpp"
#include "engine/ops/ExprOp.hpp"

/// Elementwise operations in terms of the basic ones that machine code is made of.
namespace ipujax::engine::expr {

struct StripOperand {
  code::StripBuilder::Value value = -1;
  std::optional<std::uint32_t> constant;  ///< the bits, if they are known
};
using StripOperands = std::array<StripOperand, 3>;

/// Adds op(operands), with the bits that findMap's loops give, NaNs apart; values of kHalf, and the
/// bits of bfloat16 in a kUInt16, are floats. None if the operation, or its type, has no formula
/// here.
std::optional<code::StripBuilder::Value> addOperation(code::StripBuilder& builder, Op op,
                                                      ElementType operand, ElementType result,
                                                      const StripOperands& operands);
/// Whether it has one; integers are divided by constants only, `divisor` for the second operand.
bool hasStrip(Op op, ElementType operand, ElementType result,
              std::optional<std::uint32_t> divisor = {});

}  // namespace ipujax::engine::expr
