#pragma once
// The model's compiler includes this before every codelet source: declarations that the IPU's
// compiler has without an include, and math functions of `half` under their standard names.
#define IPUJAX_CODELETS 1
#ifndef __POPC__
#define __POPC__ 1
#endif
// PopLibs' build defines it; the model runs the C++ of a vertex, never its assembly.
#ifndef ASM_CODELETS_ENABLED
#define ASM_CODELETS_ENABLED 0
#endif
#define __supervisor__
#define NO_INSTRUMENT
#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "poplar/Alignment.hpp"
#include "poplar/HalfFloat.hpp"

#if defined(IPUJAX_NATIVE_HALF) || defined(IPUJAX_HALF_ROUNDING)
namespace std {
#ifndef __STDCPP_FLOAT16_T__
template <>
struct is_floating_point<half> : true_type {};
#endif

// Computed in float, as for half on the host.
#define IPUJAX_OF_HALF(name) \
  inline float name(half x) { return name(static_cast<float>(x)); }
#define IPUJAX_TEST_HALF(name) \
  inline bool name(half x) { return name(static_cast<float>(x)); }
#define IPUJAX_OF_HALVES(name)                                                     \
  inline float name(half x, half y) { return name(float(x), float(y)); }           \
  inline float name(half x, float y) { return name(float(x), y); }                 \
  inline float name(float x, half y) { return name(x, float(y)); }
IPUJAX_OF_HALF(abs)
IPUJAX_OF_HALF(fabs)
IPUJAX_OF_HALF(acos)
IPUJAX_OF_HALF(acosh)
IPUJAX_OF_HALF(asin)
IPUJAX_OF_HALF(asinh)
IPUJAX_OF_HALF(atan)
IPUJAX_OF_HALF(atanh)
IPUJAX_OF_HALF(cbrt)
IPUJAX_OF_HALF(ceil)
IPUJAX_OF_HALF(cos)
IPUJAX_OF_HALF(cosh)
IPUJAX_OF_HALF(erf)
IPUJAX_OF_HALF(erfc)
IPUJAX_OF_HALF(exp)
IPUJAX_OF_HALF(exp2)
IPUJAX_OF_HALF(expm1)
IPUJAX_OF_HALF(floor)
IPUJAX_OF_HALF(log)
IPUJAX_OF_HALF(log10)
IPUJAX_OF_HALF(log1p)
IPUJAX_OF_HALF(log2)
IPUJAX_OF_HALF(nearbyint)
IPUJAX_OF_HALF(rint)
IPUJAX_OF_HALF(round)
IPUJAX_OF_HALF(sin)
IPUJAX_OF_HALF(sinh)
IPUJAX_OF_HALF(sqrt)
IPUJAX_OF_HALF(tan)
IPUJAX_OF_HALF(tanh)
IPUJAX_OF_HALF(trunc)
IPUJAX_TEST_HALF(isfinite)
IPUJAX_TEST_HALF(isinf)
IPUJAX_TEST_HALF(isnan)
IPUJAX_TEST_HALF(isnormal)
IPUJAX_TEST_HALF(signbit)
IPUJAX_OF_HALVES(atan2)
IPUJAX_OF_HALVES(copysign)
IPUJAX_OF_HALVES(fdim)
IPUJAX_OF_HALVES(fmax)
IPUJAX_OF_HALVES(fmin)
IPUJAX_OF_HALVES(fmod)
IPUJAX_OF_HALVES(hypot)
IPUJAX_OF_HALVES(pow)
inline float fma(half x, half y, half z) { return fma(float(x), float(y), float(z)); }
#undef IPUJAX_OF_HALF
#undef IPUJAX_TEST_HALF
#undef IPUJAX_OF_HALVES
}  // namespace std
#endif

// On the IPU, `unsigned` and the result of size() have the same type.
namespace std {
template <typename A, typename B>
using IpujaxSizes = enable_if_t<(is_same_v<A, size_t> && is_same_v<B, unsigned>) ||
                                    (is_same_v<A, unsigned> && is_same_v<B, size_t>),
                                size_t>;
template <typename A, typename B>
constexpr IpujaxSizes<A, B> min(A a, B b) {
  return a < b ? a : b;
}
template <typename A, typename B>
constexpr IpujaxSizes<A, B> max(A a, B b) {
  return a < b ? b : a;
}
}  // namespace std

// After the functions above, so that the names of <math.h> include them.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef IPUJAX_HALF_ROUNDING
#define IPUJAX_LITERAL half::nearest
#else
#define IPUJAX_LITERAL half
#endif
constexpr half operator""_h(long double value) { return IPUJAX_LITERAL(static_cast<float>(value)); }
constexpr half operator""_h(unsigned long long value) {
  return IPUJAX_LITERAL(static_cast<float>(value));
}
#undef IPUJAX_LITERAL

#ifdef IPUJAX_COUNTS_CYCLES
#include "ipu_cycles.h"
#endif
#ifdef IPUJAX_USES_BUILTINS
#include "ipu_builtins.h"
#endif
#include "poplar/VertexTable.hpp"
