#pragma once
#include <cstdint>

#include "engine/ElementType.hpp"
#include "engine/ops/ExprOp.hpp"

/// The vector loop of every elementwise operation and type. kHalf has no loops of its own: values
/// are held as float, and rounded afterwards.
namespace ipujax::engine::simd {

/// out[k] = op(a[k], b[k], c[k]) for k < n. Unused operands are null. `out` is exactly the memory
/// of an operand of the same element size, or does not overlap any.
using MapFn = void (*)(const void* a, const void* b, const void* c, void* out, std::int64_t n,
                       std::int64_t immediate);

struct MapKey {
  expr::Op op;
  ElementType operand;  ///< type of operand 0
  ElementType result;
  unsigned scalars = 0;  ///< bit i: operand i is one element for all k
};

/// The loop for this CPU, or null if the op does not take these types. Two and three operands may
/// have any `scalars`, except all of them at once (use n = 1 for that).
MapFn findMap(const MapKey& key);

/// The type that a block of `type` is held as.
constexpr ElementType blockType(ElementType type) {
  return type == ElementType::kHalf ? ElementType::kFloat : type;
}

}  // namespace ipujax::engine::simd
