#pragma once
#include <cstdint>

#include "engine/simd/FloatMath.hpp"
#include "engine/simd/MapOps.hpp"

/// Loops over blocks, from functors `R operator()(A...)`. Included by *.simd.cpp only.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

// Elements do not depend on one another, also where out is the same memory as an operand.
#if defined(__clang__)
#define IPUJAX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IPUJAX_IVDEP _Pragma("GCC ivdep")
#endif

using Any = const void*;

template <class F, class A, class R>
void unaryLoop(Any a, Any, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const A*>(a);
  auto* o = static_cast<R*>(out);
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) o[k] = F{}(x[k]);
}

template <class F, class A, class R, unsigned kScalars>
void binaryLoop(Any a, Any b, Any, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const A*>(a);
  const auto* y = static_cast<const A*>(b);
  auto* o = static_cast<R*>(out);
  const A x0 = *x;
  const A y0 = *y;
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k)
    o[k] = F{}((kScalars & 1u) ? x0 : x[k], (kScalars & 2u) ? y0 : y[k]);
}

template <class F, class A, class B, class C, class R, unsigned kScalars>
void ternaryLoop(Any a, Any b, Any c, void* out, std::int64_t n, std::int64_t) {
  const auto* x = static_cast<const A*>(a);
  const auto* y = static_cast<const B*>(b);
  const auto* z = static_cast<const C*>(c);
  auto* o = static_cast<R*>(out);
  const A x0 = *x;
  const B y0 = *y;
  const C z0 = *z;
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k)
    o[k] =
        F{}((kScalars & 1u) ? x0 : x[k], (kScalars & 2u) ? y0 : y[k], (kScalars & 4u) ? z0 : z[k]);
}

template <class F, class A, class R = A>
MapFn unary() {
  return unaryLoop<F, A, R>;
}

template <class F, class A, class R = A>
MapFn binary(unsigned scalars) {
  switch (scalars & 3u) {
    case 1:
      return binaryLoop<F, A, R, 1>;
    case 2:
      return binaryLoop<F, A, R, 2>;
    default:
      return binaryLoop<F, A, R, 0>;
  }
}

template <class F, class A, class B, class C, class R>
MapFn ternary(unsigned scalars) {
  switch (scalars & 7u) {
    case 1:
      return ternaryLoop<F, A, B, C, R, 1>;
    case 2:
      return ternaryLoop<F, A, B, C, R, 2>;
    case 3:
      return ternaryLoop<F, A, B, C, R, 3>;
    case 4:
      return ternaryLoop<F, A, B, C, R, 4>;
    case 5:
      return ternaryLoop<F, A, B, C, R, 5>;
    case 6:
      return ternaryLoop<F, A, B, C, R, 6>;
    default:
      return ternaryLoop<F, A, B, C, R, 0>;
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
