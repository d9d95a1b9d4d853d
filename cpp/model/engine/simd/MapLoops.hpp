#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "engine/simd/FloatMath.hpp"
#include "engine/simd/MapOps.hpp"

/// Loops over blocks, from functors `R operator()(A...)`. Included by *.simd.cpp only.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

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
  constexpr MapFn kLoops[] = {binaryLoop<F, A, R, 0>, binaryLoop<F, A, R, 1>,
                              binaryLoop<F, A, R, 2>};
  return kLoops[(scalars & 3u) % 3];
}

template <class F, class A, class B, class C, class R>
MapFn ternary(unsigned scalars) {
  constexpr MapFn kLoops[] = {ternaryLoop<F, A, B, C, R, 0>, ternaryLoop<F, A, B, C, R, 1>,
                              ternaryLoop<F, A, B, C, R, 2>, ternaryLoop<F, A, B, C, R, 3>,
                              ternaryLoop<F, A, B, C, R, 4>, ternaryLoop<F, A, B, C, R, 5>,
                              ternaryLoop<F, A, B, C, R, 6>};
  return kLoops[(scalars & 7u) % 7];
}

/// Result type of a function of elements: a C++ bool is a kBool.
template <class F, class A>
using ResultOf = std::conditional_t<std::is_same_v<decltype(F{}(A{})), bool>, std::uint8_t, A>;

/// The loop of a function of kOperands elements of type A; a C++ bool result becomes a kBool.
template <int kOperands, class A, class F>
MapFn loopOf(F, unsigned scalars) {
  using R = ResultOf<F, A>;
  if constexpr (kOperands == 1)
    return unary<F, A, R>();
  else if constexpr (kOperands == 2)
    return binary<F, A, R>(scalars);
  else
    return ternary<F, A, A, A, R>(scalars);
}

template <class T>
struct Select {
  __attribute__((always_inline)) T operator()(T a, T b, std::uint8_t p) const { return p ? a : b; }
};

IPUJAX_INLINE float logGamma(float x) {
  int sign = 0;  // lgamma itself writes a global
  return ::lgammaf_r(x, &sign);
}

/// For rows of ElementwiseOps.def: a case of a switch over operations, which returns the loop of an
/// expression of operands a, b, c of type A.
#define IPUJAX_CASE(Name, operands, ...)                 \
  case expr::Op::k##Name: {                              \
    [[maybe_unused]] constexpr int kOperands = operands; \
    __VA_ARGS__ break;                                   \
  }
#define IPUJAX_LAMBDA(A, ...)                                                    \
  []([[maybe_unused]] A a, [[maybe_unused]] A b = {}, [[maybe_unused]] A c = {}) \
      IPUJAX_FN { return __VA_ARGS__; }
#define IPUJAX_LOOP(A, ...) return loopOf<kOperands, A>(IPUJAX_LAMBDA(A, __VA_ARGS__), scalars);

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
