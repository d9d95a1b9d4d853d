#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "engine/simd/Registers.hpp"

/// Maxima and minima of floating-point elements and registers. NaN propagates; of equal operands
/// only zeros differ, and +0 is the larger. Only for *.simd.cpp files.
namespace ipujax::engine::reduction {
namespace IPUJAX_ISA_NAMESPACE {
namespace {  // NOLINT: each file needs its own copy

// Both orders of the operands give the same result except for zeros and NaN. A minimum takes all
// bits of the two results, which gives -0 or a NaN, and a maximum the common bits.

template <bool kLarger, class V>
inline __attribute__((always_inline)) V extremeOfElements(V a, V b) {
  using Bits = std::conditional_t<sizeof(V) == 4, std::uint32_t, std::uint64_t>;
  const auto x = std::bit_cast<Bits>(kLarger ? (a > b ? a : b) : (a < b ? a : b));
  const auto y = std::bit_cast<Bits>(kLarger ? (b > a ? b : a) : (b < a ? b : a));
  if constexpr (!kLarger) return std::bit_cast<V>(x | y);
  return std::bit_cast<V>((x & y) | (Bits{0} - Bits{__builtin_isunordered(a, b) != 0}));
}

#if defined(__AVX2__)
/// What the instruction computes: b if neither is larger or smaller.
template <bool kLarger, class V>
inline __attribute__((always_inline)) V orderedOrSecond(V a, V b) {
  constexpr bool kDouble = sizeof(a[0]) == 8;
#if defined(__AVX512F__)
  if constexpr (kDouble) {
    return kLarger ? (V)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b)
                   : (V)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
  } else {
    return kLarger ? (V)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b)
                   : (V)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
  }
#else
  if constexpr (kDouble) {
    return kLarger ? (V)_mm256_max_pd((__m256d)a, (__m256d)b)
                   : (V)_mm256_min_pd((__m256d)a, (__m256d)b);
  } else {
    return kLarger ? (V)_mm256_max_ps((__m256)a, (__m256)b)
                   : (V)_mm256_min_ps((__m256)a, (__m256)b);
  }
#endif
}

/// All bits set where a or b is NaN.
template <class V>
inline __attribute__((always_inline)) V unordered(V a, V b) {
#if defined(__AVX512F__)
  return (V)((a != a) | (b != b));
#else
  if constexpr (sizeof(a[0]) == 8) {
    return (V)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
  } else {
    return (V)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
  }
#endif
}
#endif

template <bool kLarger, class V>
inline __attribute__((always_inline)) V extremeOf(V a, V b) {
  if constexpr (std::is_floating_point_v<V>) {
    return extremeOfElements<kLarger>(a, b);
  } else {
    using Bits = decltype(a == b);
#if defined(__AVX2__)
    if constexpr (sizeof(V) == simd::IPUJAX_ISA_NAMESPACE::kRegisterBytes) {
      const Bits x = (Bits)orderedOrSecond<kLarger>(a, b);
      const Bits y = (Bits)orderedOrSecond<kLarger>(b, a);
      if constexpr (!kLarger) return (V)(x | y);
      return (V)((x & y) | (Bits)unordered(a, b));
    }
#endif
    const V zeros = kLarger ? (V)((Bits)a & (Bits)b) : (V)((Bits)a | (Bits)b);
    return ((kLarger ? a > b : a < b) | (a != a)) ? a : (a == b ? zeros : b);
  }
}

}  // namespace
}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::reduction
