#include "engine/simd/MapOps.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::simd {

IPUJAX_DECLARE_SIMD(MapFn findFloat(expr::Op, unsigned))
IPUJAX_DECLARE_SIMD(MapFn findDouble(expr::Op, unsigned))
IPUJAX_DECLARE_SIMD(MapFn findInteger(expr::Op, ElementType, unsigned))
IPUJAX_DECLARE_SIMD(MapFn findSelect(unsigned, unsigned))
IPUJAX_DECLARE_SIMD(MapFn findCast(ElementType, ElementType))
IPUJAX_DECLARE_SIMD(MapFn findBits(expr::Op, ElementType))

MapFn findMap(const MapKey& key) {
  using expr::Op;
  const ElementType operand = blockType(key.operand);
  switch (key.op) {
    case Op::kReducePrecision:
      if (operand == ElementType::kDouble) return IPUJAX_PICK(findDouble)(key.op, 0);
      return IPUJAX_PICK(findBits)(key.op, key.operand);
    case Op::kSelect:
      return IPUJAX_PICK(findSelect)(static_cast<unsigned>(sizeOf(operand)), key.scalars);
    case Op::kCast:
      return IPUJAX_PICK(findCast)(operand, blockType(key.result));
    case Op::kBitcast:
      return IPUJAX_PICK(findBits)(key.op, operand);
    case Op::kFromBFloat16:
    case Op::kToBFloat16:
    case Op::kRoundToBFloat16:
      return IPUJAX_PICK(findBits)(key.op, key.operand);
    default:
      break;
  }
  if (operand == ElementType::kDouble) return IPUJAX_PICK(findDouble)(key.op, key.scalars);
  if (operand != ElementType::kFloat) return IPUJAX_PICK(findInteger)(key.op, operand, key.scalars);
  return IPUJAX_PICK(findFloat)(key.op, key.scalars);
}

}  // namespace ipujax::engine::simd
