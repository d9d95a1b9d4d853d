#include "engine/simd/ScalarOps.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarFloat(expr::Op))
IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarInteger(expr::Op, ElementType))
IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarSelect(std::size_t))
IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarCast(ElementType, ElementType))

ScalarOp::Function findScalar(const MapKey& key) {
  const ElementType operand = blockType(key.operand);
  if (key.op == expr::Op::kSelect) return IPUJAX_PICK(findScalarSelect)(sizeOf(operand));
  if (key.op == expr::Op::kCast) return IPUJAX_PICK(findScalarCast)(operand, blockType(key.result));
  if (operand == ElementType::kDouble) return nullptr;
  if (operand == ElementType::kFloat) return IPUJAX_PICK(findScalarFloat)(key.op);
  return IPUJAX_PICK(findScalarInteger)(key.op, operand);
}

}  // namespace ipujax::engine::simd
