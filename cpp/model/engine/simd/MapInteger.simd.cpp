#include "engine/simd/IntegerMath.hpp"
#include "engine/simd/MapLoops.hpp"

/// Integers and bool (held as 0 or 1 in a byte).
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

template <class T>
MapFn integer(expr::Op op, unsigned scalars) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define I(...) IPUJAX_LOOP(T, __VA_ARGS__)
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

MapFn boolean(expr::Op op, unsigned scalars) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define B(...) IPUJAX_LOOP(std::uint8_t, __VA_ARGS__)
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}
}  // namespace

MapFn findInteger(expr::Op op, ElementType type, unsigned scalars) {
  if (type == ElementType::kBool) return boolean(op, scalars);
  return withInteger(type, [&]<class T>(T) { return integer<T>(op, scalars); });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
