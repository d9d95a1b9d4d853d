#include "engine/blas/Arithmetic.hpp"

#include <string>

#include "engine/Errors.hpp"

namespace ipujax::engine::blas {
namespace {

bool isReal(ElementType type) { return type == ElementType::kFloat || type == ElementType::kHalf; }

bool fitsShort(ElementType type) {
  return isInteger(type) && (sizeOf(type) == 1 || type == ElementType::kInt16);
}

}  // namespace

Arithmetic arithmeticOf(ElementType a, ElementType b, ElementType out) {
  if (isReal(a) && isReal(b) && isReal(out)) return Arithmetic::kFloats;
  if (a == ElementType::kDouble && b == a && out == a) return Arithmetic::kDoubles;
  if (!isInteger(a) || !isInteger(b) || !isInteger(out))
    throw type_error(
        std::string("[blas] needs float and half, double, or integers throughout; got ") +
        nameOf(a) + " x " + nameOf(b) + " -> " + nameOf(out) + ". Cast the operands.");
  if (sizeOf(out) == 8) return Arithmetic::kLongInts;
  // A sum cut to 16 bits depends only on the operands' low 16 bits; a bool depends on all bits.
  const bool cut = sizeOf(out) <= 2 && out != ElementType::kBool;
  return cut || (fitsShort(a) && fitsShort(b)) ? Arithmetic::kShortPairs : Arithmetic::kInts;
}

}  // namespace ipujax::engine::blas
