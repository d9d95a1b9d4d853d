#include "engine/simd/ScalarOps.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarFloat(expr::Op, unsigned))
IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarInteger(expr::Op, ElementType, unsigned))
IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarSelect(ElementType, unsigned))
IPUJAX_DECLARE_SIMD(ScalarOp::Function findScalarCast(ElementType, ElementType, unsigned))

ScalarOp::Function findScalar(const MapKey& key, unsigned held) {
  const ElementType operand = blockType(key.operand);
  if (key.op == expr::Op::kSelect) return IPUJAX_PICK(findScalarSelect)(operand, held);
  if (key.op == expr::Op::kCast)
    return IPUJAX_PICK(findScalarCast)(operand, blockType(key.result), held);
  if (operand == ElementType::kDouble) return nullptr;
  if (operand == ElementType::kFloat) return IPUJAX_PICK(findScalarFloat)(key.op, held);
  return IPUJAX_PICK(findScalarInteger)(key.op, operand, held);
}

}  // namespace ipujax::engine::simd
