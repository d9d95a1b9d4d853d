#pragma once
// Long: one list of the IPU compiler's builtins, as documented.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "ipu_registers.h"
#include "lanes.h"
#include "poplar/Loops.hpp"
#include "tilearch.h"

// The IPU compiler's builtins. ipu_builtin_names.h maps their names to these: host compilers cannot
// overload functions whose names begin with __builtin. Bitwise functions and half arithmetic give
// the IPU's bits; transcendental ones are correctly rounded for half, and the host's for float.
namespace ipujax_builtins {
using ipujax_lanes::bits;
using ipujax_lanes::each;
using ipujax_lanes::lane;
using ipujax_lanes::Lanes;
using ipujax_lanes::Number;
using ipujax_lanes::words;
using namespace ipujax_vectors;  // NOLINT: only types

/// The result of a comparison, by element: all bits set, or none.
template <class V, class F>
V masks(F f, const V& x, const V& y) {
  using Bits = std::conditional_t<ipujax_lanes::is_half<V>, std::uint16_t, std::uint32_t>;
  Bits made[Lanes<V>::count];
  for (int i = 0; i < Lanes<V>::count; ++i) made[i] = f(lane(x, i), lane(y, i)) ? Bits(~0u) : 0;
  return bits<V>(made);
}

inline int classOf(float x, float smallest) {
  if (x != x) return (bits<std::uint32_t>(x) & 0x00400000u) ? TFPU_CLASS_QNAN : TFPU_CLASS_SNAN;
  const bool negative = std::signbit(x);
  if (std::isinf(x)) return negative ? TFPU_CLASS_NINF : TFPU_CLASS_PINF;
  if (x == 0) return negative ? TFPU_CLASS_NZERO : TFPU_CLASS_PZERO;
  if (std::fabs(x) < smallest) return negative ? TFPU_CLASS_NDENORM : TFPU_CLASS_PDENORM;
  return negative ? TFPU_CLASS_NNORM : TFPU_CLASS_PNORM;
}

template <class Made, class V, class F>
Made integers(F f, const V& x) {
  Made made{};
  for (int i = 0; i < Lanes<V>::count; ++i) made[i] = f(lane(x, i));
  return made;
}

inline std::uint8_t byteOf(unsigned x, int i) { return static_cast<std::uint8_t>(x >> 8 * i); }
inline unsigned word(unsigned b0, unsigned b1, unsigned b2, unsigned b3) {
  return b0 | b1 << 8 | b2 << 16 | b3 << 24;
}

inline float uniform() {  // in (-0.5, 0.5), as from an IPU's 32 bits
  return static_cast<float>(static_cast<std::int32_t>(ipujax_registers::next() >> 32)) * 0x1p-32f;
}
/// Approximates a normal number by the sum of twelve uniform ones, as the IPU does.
inline float normal() {
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t random = ipujax_registers::next();
    for (int part = 0; part < 4; ++part)
      sum += (static_cast<float>(random >> 16 * part & 0xffff) + 0.5f) * 0x1p-16f;
  }
  return sum - 6;
}

template <class V>
V randomMask(V v, float probability) {
  for (int i = 0; i < Lanes<V>::count; ++i) {
    if (uniform() + 0.5f >= probability) v[i] = 0;
  }
  return v;
}

/// Throws std::invalid_argument if there is no such register.
inline int registerOf(int index) {
  if (index >= 0 && index < 256) return index;
  throw std::invalid_argument("[__builtin_ipu_get] needs a register from 0 to 255; got " +
                              std::to_string(index) + ". Use a name of tilearch.h");
}

inline float* accumulators() { return ipujax_registers::worker().accumulators; }

/// Returns the first two accumulators; the others move up, and `v` comes last.
inline float2 next(float2 v) {
  float* a = accumulators();
  const float2 first = {a[0], a[2]};
  for (int i = 4; i < 16; i += 4) {
    a[i - 4] = a[i];
    a[i - 2] = a[i + 2];
  }
  a[12] = v[0];
  a[14] = v[1];
  return first;
}

}  // namespace ipujax_builtins

// Functions of one or two operands for float, half and vectors, also under a name for each type.
#define IPUJAX_FOR_TYPES1(name)                                                                \
  inline ipujax_vectors::half2 ipujax_ipu_f16v2##name(ipujax_vectors::half2 x) {            \
    return ipujax_ipu_##name(x);                                                            \
  }                                                                                            \
  inline float ipujax_ipu_f32##name(float x) { return ipujax_ipu_##name(x); }
#define IPUJAX_FOR_TYPES2(name)                                                                \
  inline ipujax_vectors::half2 ipujax_ipu_f16v2##name(ipujax_vectors::half2 x,              \
                                                         ipujax_vectors::half2 y) {            \
    return ipujax_ipu_##name(x, y);                                                         \
  }                                                                                            \
  inline ipujax_vectors::half4 ipujax_ipu_f16v4##name(ipujax_vectors::half4 x,              \
                                                         ipujax_vectors::half4 y) {            \
    return ipujax_ipu_##name(x, y);                                                         \
  }                                                                                            \
  inline ipujax_vectors::float2 ipujax_ipu_f32v2##name(ipujax_vectors::float2 x,            \
                                                          ipujax_vectors::float2 y) {          \
    return ipujax_ipu_##name(x, y);                                                         \
  }                                                                                            \
  inline float ipujax_ipu_f32##name(float x, float y) { return ipujax_ipu_##name(x, y); }
#define IPUJAX_BUILTIN1(name, expression)                                        \
  template <class V>                                                             \
  ipujax_lanes::Number<V> ipujax_ipu_##name(V v) {                            \
    return ipujax_lanes::each<V>([](float x) { return expression; }, v);         \
  }                                                                              \
  template <class F>                                                             \
  ipujax_lanes::Shared<F> ipujax_ipu_##name(const F& f) {                     \
    return ipujax_ipu_##name(ipujax_lanes::Shared<F>(f));                     \
  }                                                                              \
  IPUJAX_FOR_TYPES1(name)
#define IPUJAX_BUILTIN2(name, expression)                                                 \
  template <class V>                                                                      \
  ipujax_lanes::Number<V> ipujax_ipu_##name(V v, V w) {                                \
    return ipujax_lanes::each<V>([](float x, float y) { return expression; }, v, w);      \
  }                                                                                       \
  template <class A, class B>                                                             \
  ipujax_lanes::Shared<A, B> ipujax_ipu_##name(const A& a, const B& b) {               \
    using V = ipujax_lanes::Shared<A, B>;                                                 \
    return ipujax_ipu_##name(V(a), V(b));                                              \
  }                                                                                       \
  IPUJAX_FOR_TYPES2(name)
#define IPUJAX_COMPARISON(name, op)                                                       \
  template <class V>                                                                      \
  ipujax_lanes::Number<V> ipujax_ipu_##name(V v, V w) {                                \
    return ipujax_builtins::masks([](float x, float y) { return x op y; }, v, w);         \
  }                                                                                       \
  template <class A, class B>                                                             \
  ipujax_lanes::Shared<A, B> ipujax_ipu_##name(const A& a, const B& b) {               \
    using V = ipujax_lanes::Shared<A, B>;                                                 \
    return ipujax_ipu_##name(V(a), V(b));                                              \
  }                                                                                       \
  IPUJAX_FOR_TYPES2(name)

IPUJAX_BUILTIN1(exp, std::exp(x))
IPUJAX_BUILTIN1(exp2, std::exp2(x))
IPUJAX_BUILTIN1(ln, std::log(x))
IPUJAX_BUILTIN1(log2, std::log2(x))
IPUJAX_BUILTIN1(oorx, 1.0f / std::sqrt(x))
IPUJAX_BUILTIN1(rsqrt, 1.0f / std::sqrt(x))
IPUJAX_BUILTIN1(sigm, ipujax_lanes::sigmoid(x))
IPUJAX_BUILTIN1(sqrt, std::sqrt(x))
IPUJAX_BUILTIN1(tanh, std::tanh(x))
IPUJAX_BUILTIN2(absadd, std::fabs(x) + std::fabs(y))
IPUJAX_BUILTIN2(absmax, std::fmax(std::fabs(x), std::fabs(y)))
IPUJAX_BUILTIN2(max, std::fmax(x, y))
IPUJAX_BUILTIN2(min, std::fmin(x, y))
IPUJAX_COMPARISON(cmpeq, ==)
IPUJAX_COMPARISON(cmpge, >=)
IPUJAX_COMPARISON(cmpgt, >)
IPUJAX_COMPARISON(cmple, <=)
IPUJAX_COMPARISON(cmplt, <)
IPUJAX_COMPARISON(cmpne, !=)
#undef IPUJAX_BUILTIN1
#undef IPUJAX_BUILTIN2
#undef IPUJAX_COMPARISON
#undef IPUJAX_FOR_TYPES1
#undef IPUJAX_FOR_TYPES2
inline float ipujax_ipu_f32atan(float x) { return std::atan(x); }

// Operands of different types, which the IPU's compiler also accepts.
inline float ipujax_ipu_max(float x, double y) { return std::fmax(x, static_cast<float>(y)); }
inline float ipujax_ipu_max(double x, float y) { return std::fmax(static_cast<float>(x), y); }
inline float ipujax_ipu_max(double x, double y) { return static_cast<float>(std::fmax(x, y)); }
inline float ipujax_ipu_min(float x, double y) { return std::fmin(x, static_cast<float>(y)); }
inline float ipujax_ipu_min(double x, float y) { return std::fmin(static_cast<float>(x), y); }
inline float ipujax_ipu_min(double x, double y) { return static_cast<float>(std::fmin(x, y)); }
inline int ipujax_ipu_max(int x, int y) { return x < y ? y : x; }
inline int ipujax_ipu_min(int x, int y) { return y < x ? y : x; }
inline unsigned ipujax_ipu_max(unsigned x, unsigned y) { return x < y ? y : x; }
inline unsigned ipujax_ipu_min(unsigned x, unsigned y) { return y < x ? y : x; }

// Bitwise functions of integers and of the bits of floats.
#define IPUJAX_BITWISE(name, expression)                                                      \
  inline int ipujax_ipu_##name(int a, int b) { return expression; }                        \
  inline int ipujax_ipu_##name(unsigned c, int b) {                                        \
    const int a = static_cast<int>(c);                                                        \
    return expression;                                                                        \
  }                                                                                           \
  inline unsigned ipujax_ipu_##name(unsigned a, unsigned b) { return expression; }         \
  inline int ipujax_ipu_##name##_i32(int a, int b) { return expression; }                  \
  template <class V>                                                                          \
  ipujax_lanes::Number<V> ipujax_ipu_##name(V v, V w) {                                    \
    return ipujax_lanes::words([](std::uint32_t a, std::uint32_t b) { return expression; },   \
                               v, w);                                                         \
  }                                                                                           \
  inline float ipujax_ipu_##name##_f32(float v, float w) {                                 \
    return ipujax_ipu_##name(v, w);                                                        \
  }                                                                                           \
  inline ipujax_vectors::float2 ipujax_ipu_##name##_v2f32(ipujax_vectors::float2 v,        \
                                                             ipujax_vectors::float2 w) {      \
    return ipujax_ipu_##name(v, w);                                                        \
  }
IPUJAX_BITWISE(and, a & b)
IPUJAX_BITWISE(andc, a & ~b)
IPUJAX_BITWISE(or, a | b)
IPUJAX_BITWISE(xor, a ^ b)
#undef IPUJAX_BITWISE
template <class V>
ipujax_lanes::Number<V> ipujax_ipu_not(V v) {
  return ipujax_lanes::words([](std::uint32_t a, std::uint32_t) { return ~a; }, v, v);
}
inline float ipujax_ipu_not_f32(float v) { return ipujax_ipu_not(v); }
inline ipujax_vectors::float2 ipujax_ipu_not_v2f32(ipujax_vectors::float2 v) {
  return ipujax_ipu_not(v);
}

// Classes of numbers.
#define IPUJAX_IS(name)                                                                     \
  inline int ipujax_ipu_##name(float v) { return std::name(v); }                         \
  inline ipujax_vectors::int2 ipujax_ipu_##name(ipujax_vectors::float2 v) {              \
    return ipujax_builtins::integers<ipujax_vectors::int2>(                                 \
        [](float x) { return std::name(x); }, v);                                           \
  }                                                                                         \
  inline ipujax_vectors::short2 ipujax_ipu_##name(ipujax_vectors::half2 v) {             \
    return ipujax_builtins::integers<ipujax_vectors::short2>(                               \
        [](float x) { return std::name(x); }, v);                                           \
  }                                                                                         \
  inline ipujax_vectors::short4 ipujax_ipu_##name(ipujax_vectors::half4 v) {             \
    return ipujax_builtins::integers<ipujax_vectors::short4>(                               \
        [](float x) { return std::name(x); }, v);                                           \
  }                                                                                         \
  inline int ipujax_ipu_##name##_f32(float v) { return std::name(v); }                   \
  inline auto ipujax_ipu_##name##_v2f32(ipujax_vectors::float2 v) {                      \
    return ipujax_ipu_##name(v);                                                         \
  }                                                                                         \
  inline auto ipujax_ipu_##name##_v2f16(ipujax_vectors::half2 v) {                       \
    return ipujax_ipu_##name(v);                                                         \
  }                                                                                         \
  inline auto ipujax_ipu_##name##_v4f16(ipujax_vectors::half4 v) {                       \
    return ipujax_ipu_##name(v);                                                         \
  }
IPUJAX_IS(isfinite)
IPUJAX_IS(isinf)
IPUJAX_IS(isnan)
#undef IPUJAX_IS
inline int ipujax_ipu_class(float v) { return ipujax_builtins::classOf(v, 0x1p-126f); }
inline ipujax_vectors::short2 ipujax_ipu_class(ipujax_vectors::float2 v) {
  return ipujax_builtins::integers<ipujax_vectors::short2>(
      [](float x) { return ipujax_builtins::classOf(x, 0x1p-126f); }, v);
}
inline ipujax_vectors::short2 ipujax_ipu_class(ipujax_vectors::half2 v) {
  return ipujax_builtins::integers<ipujax_vectors::short2>(
      [](float x) { return ipujax_builtins::classOf(x, 0x1p-14f); }, v);
}
inline ipujax_vectors::short4 ipujax_ipu_class(ipujax_vectors::half4 v) {
  return ipujax_builtins::integers<ipujax_vectors::short4>(
      [](float x) { return ipujax_builtins::classOf(x, 0x1p-14f); }, v);
}
inline int ipujax_ipu_f32class(float v) { return ipujax_ipu_class(v); }
inline ipujax_vectors::short2 ipujax_ipu_f32v2class(ipujax_vectors::float2 v) {
  return ipujax_ipu_class(v);
}
inline ipujax_vectors::short2 ipujax_ipu_f16v2class(ipujax_vectors::half2 v) {
  return ipujax_ipu_class(v);
}
inline ipujax_vectors::short4 ipujax_ipu_f16v4class(ipujax_vectors::half4 v) {
  return ipujax_ipu_class(v);
}

// Clamping between two bounds; sums and maxima of elements; conversions.
template <class V, class Bounds>
ipujax_lanes::Number<V> ipujax_ipu_clamp(V v, Bounds bounds) {
  const float low = ipujax_lanes::lane(bounds, 0), high = ipujax_lanes::lane(bounds, 1);
  return ipujax_lanes::each<V>([=](float x) { return std::fmin(std::fmax(x, low), high); }, v);
}
inline float ipujax_ipu_f32clamp(float v, ipujax_vectors::float2 b) {
  return ipujax_ipu_clamp(v, b);
}
inline ipujax_vectors::float2 ipujax_ipu_f32v2clamp(ipujax_vectors::float2 v,
                                                       ipujax_vectors::float2 b) {
  return ipujax_ipu_clamp(v, b);
}
inline ipujax_vectors::half2 ipujax_ipu_f16v2clamp(ipujax_vectors::half2 v,
                                                      ipujax_vectors::half2 b) {
  return ipujax_ipu_clamp(v, b);
}
inline ipujax_vectors::half4 ipujax_ipu_f16v4clamp(ipujax_vectors::half4 v,
                                                      ipujax_vectors::half2 b) {
  return ipujax_ipu_clamp(v, b);
}
inline float ipujax_ipu_sum(ipujax_vectors::half2 v) { return float(v[0]) + float(v[1]); }
inline ipujax_vectors::float2 ipujax_ipu_sum(ipujax_vectors::half4 v) {
  return ipujax_vectors::float2{float(v[0]) + float(v[1]), float(v[2]) + float(v[3])};
}
inline float ipujax_ipu_f16v2sum(ipujax_vectors::half2 v) { return ipujax_ipu_sum(v); }
inline ipujax_vectors::float2 ipujax_ipu_f16v4sum(ipujax_vectors::half4 v) {
  return ipujax_ipu_sum(v);
}
inline half ipujax_ipu_maxc(ipujax_vectors::half2 v) {
  return half(std::fmax(float(v[0]), float(v[1])));
}
inline ipujax_vectors::half2 ipujax_ipu_maxc(ipujax_vectors::half4 v) {
  return ipujax_vectors::half2{half(std::fmax(float(v[0]), float(v[1]))),
                               half(std::fmax(float(v[2]), float(v[3])))};
}
inline half ipujax_ipu_f16v2maxc(ipujax_vectors::half2 v) { return ipujax_ipu_maxc(v); }
inline ipujax_vectors::half2 ipujax_ipu_f16v4maxc(ipujax_vectors::half4 v) {
  return ipujax_ipu_maxc(v);
}
inline float ipujax_ipu_f16tof32(half x) { return float(x); }
inline half ipujax_ipu_f32tof16(float x) { return half(x); }

// Bytes and 16-bit halves of words.
inline unsigned ipujax_ipu_bitrev8(unsigned x) {
  unsigned made = 0;
  for (int i = 0; i < 32; ++i) made |= (x >> i & 1u) << (i / 8 * 8 + 7 - i % 8);
  return made;
}
inline unsigned ipujax_ipu_roll8l(unsigned x, unsigned y) { return x << 8 | y >> 24; }
inline unsigned ipujax_ipu_roll8r(unsigned x, unsigned y) { return x >> 8 | y << 24; }
inline unsigned ipujax_ipu_roll16(unsigned x, unsigned y) { return x >> 16 | y << 16; }
inline ipujax_vectors::half2 ipujax_ipu_roll16(ipujax_vectors::half2 x,
                                                  ipujax_vectors::half2 y) {
  return ipujax_vectors::half2{x[1], y[0]};
}
inline ipujax_vectors::float2 ipujax_ipu_roll32(ipujax_vectors::float2 x,
                                                   ipujax_vectors::float2 y) {
  return ipujax_vectors::float2{x[1], y[0]};
}
inline unsigned ipujax_ipu_shuf8x8lo(unsigned x, unsigned y) {
  using ipujax_builtins::byteOf;
  return ipujax_builtins::word(byteOf(x, 0), byteOf(y, 0), byteOf(x, 1), byteOf(y, 1));
}
inline unsigned ipujax_ipu_shuf8x8hi(unsigned x, unsigned y) {
  return ipujax_ipu_shuf8x8lo(x >> 16, y >> 16);
}
inline unsigned ipujax_ipu_sort8(unsigned x) {
  using ipujax_builtins::byteOf;
  return ipujax_builtins::word(byteOf(x, 0), byteOf(x, 2), byteOf(x, 1), byteOf(x, 3));
}
inline unsigned ipujax_ipu_swap8(unsigned x) {
  using ipujax_builtins::byteOf;
  return ipujax_builtins::word(byteOf(x, 1), byteOf(x, 0), byteOf(x, 3), byteOf(x, 2));
}
inline unsigned ipujax_ipu_sort8x8lo(unsigned x, unsigned y) {
  using ipujax_builtins::byteOf;
  return ipujax_builtins::word(byteOf(x, 0), byteOf(x, 2), byteOf(y, 0), byteOf(y, 2));
}
inline unsigned ipujax_ipu_sort8x8hi(unsigned x, unsigned y) {
  return ipujax_ipu_sort8x8lo(x >> 8, y >> 8);
}
inline unsigned ipujax_ipu_sort4x16lo(unsigned x, unsigned y) { return (x & 0xffffu) | y << 16; }
inline unsigned ipujax_ipu_sort4x16hi(unsigned x, unsigned y) {
  return x >> 16 | (y & 0xffff0000u);
}
inline ipujax_vectors::half2 ipujax_ipu_sort4x16lo(ipujax_vectors::half2 x,
                                                      ipujax_vectors::half2 y) {
  return ipujax_vectors::half2{x[0], y[0]};
}
inline ipujax_vectors::half2 ipujax_ipu_sort4x16hi(ipujax_vectors::half2 x,
                                                      ipujax_vectors::half2 y) {
  return ipujax_vectors::half2{x[1], y[1]};
}
inline ipujax_vectors::float2 ipujax_ipu_sort4x32lo(ipujax_vectors::float2 x,
                                                       ipujax_vectors::float2 y) {
  return ipujax_vectors::float2{x[0], y[0]};
}
inline ipujax_vectors::float2 ipujax_ipu_sort4x32hi(ipujax_vectors::float2 x,
                                                       ipujax_vectors::float2 y) {
  return ipujax_vectors::float2{x[1], y[1]};
}
/// Number of leading bits that equal the sign bit, without the sign bit.
inline unsigned ipujax_ipu_cms(int x) {
  const auto magnitude = static_cast<unsigned>(x < 0 ? ~x : x);
  return magnitude == 0 ? 31u : static_cast<unsigned>(__builtin_clz(magnitude)) - 1;
}

// Random numbers.
inline unsigned ipujax_ipu_urand32() {
  return static_cast<unsigned>(ipujax_registers::next() >> 32);
}
inline unsigned long long ipujax_ipu_urand64() { return ipujax_registers::next(); }
inline float ipujax_ipu_urand_f32() { return ipujax_builtins::uniform(); }
inline half ipujax_ipu_urand_f16() { return half(ipujax_builtins::uniform()); }
inline ipujax_vectors::float2 ipujax_ipu_f32v2grand() {
  const float first = ipujax_builtins::normal();
  return ipujax_vectors::float2{first, ipujax_builtins::normal()};
}
inline ipujax_vectors::half2 ipujax_ipu_f16v2grand() {
  const half first = half(ipujax_builtins::normal());
  return ipujax_vectors::half2{first, half(ipujax_builtins::normal())};
}
template <class V>
ipujax_lanes::Number<V> ipujax_ipu_rmask(V v, float probability) {
  return ipujax_builtins::randomMask(v, probability);
}
inline ipujax_vectors::half4 ipujax_ipu_f16v4rmask(ipujax_vectors::half4 v, float p) {
  return ipujax_ipu_rmask(v, p);
}
inline ipujax_vectors::float2 ipujax_ipu_f32v2rmask(ipujax_vectors::float2 v, float p) {
  return ipujax_ipu_rmask(v, p);
}

// Accumulators. Source of their layout: tessellate-ipu, ipu_amp.hpp.
inline void ipujax_ipu_put_tas(float v) { ipujax_registers::worker().tas = v; }
inline void ipujax_ipu_aacc_zero() {
  for (int i = 0; i < 16; ++i) ipujax_builtins::accumulators()[i] = 0;
}
inline ipujax_vectors::float2 ipujax_ipu_f32v2axpy(ipujax_vectors::float2 x,
                                                      ipujax_vectors::float2 y) {
  float* a = ipujax_builtins::accumulators();
  const float scale = ipujax_registers::worker().tas;
  const ipujax_vectors::float2 before = {a[0], a[2]};
  a[0] = scale * y[0] + x[0];
  a[2] = scale * y[1] + x[1];
  return before;
}
inline void ipujax_ipu_f32v2aop(ipujax_vectors::float2 x, ipujax_vectors::float2 y, int) {
  float* a = ipujax_builtins::accumulators();
  a[0] += x[0] * y[0];
  a[2] += x[1] * y[0];
  a[4] += x[0] * y[1];
  a[6] += x[1] * y[1];
}
inline void ipujax_ipu_cmac(ipujax_vectors::half2 x, ipujax_vectors::half2 y) {
  float* a = ipujax_builtins::accumulators();
  a[0] += float(x[0]) * float(y[0]) + float(x[1]) * float(y[1]);
}
inline void ipujax_ipu_cmac(ipujax_vectors::half4 x, ipujax_vectors::half4 y) {
  float* a = ipujax_builtins::accumulators();
  a[0] += float(x[0]) * float(y[0]) + float(x[1]) * float(y[1]);
  a[2] += float(x[2]) * float(y[2]) + float(x[3]) * float(y[3]);
}
inline void ipujax_ipu_f16v2cmac(ipujax_vectors::half2 x, ipujax_vectors::half2 y) {
  ipujax_ipu_cmac(x, y);
}
inline void ipujax_ipu_f16v4cmac(ipujax_vectors::half4 x, ipujax_vectors::half4 y) {
  ipujax_ipu_cmac(x, y);
}
inline void ipujax_ipu_f32v2cmac(ipujax_vectors::float2 x, ipujax_vectors::float2 y) {
  float* a = ipujax_builtins::accumulators();
  a[0] += x[0] * y[0];
  a[2] += x[1] * y[1];
}
inline ipujax_vectors::float2 ipujax_ipu_gina(ipujax_vectors::float2 v, int) {
  return ipujax_builtins::next(v);
}
inline ipujax_vectors::half2 ipujax_ipu_gina(ipujax_vectors::half2 v, int) {
  const auto first = ipujax_builtins::next(ipujax_vectors::float2{float(v[0]), float(v[1])});
  return ipujax_vectors::half2{half(first[0]), half(first[1])};
}
inline ipujax_vectors::float2 ipujax_ipu_f32v2gina(ipujax_vectors::float2 v, int flags) {
  return ipujax_ipu_gina(v, flags);
}
inline ipujax_vectors::half2 ipujax_ipu_f16v2gina(ipujax_vectors::half2 v, int flags) {
  return ipujax_ipu_gina(v, flags);
}

// Registers, and where the vertex runs. A register returns the value put into it; writing FP_CLR
// clears the accumulators, and other registers have no effect.
inline unsigned ipujax_ipu_get(int index) {
  if (index == CSR_W_WSR__INDEX) return ipujax_registers::worker().worker;
  return ipujax_registers::worker().lower[ipujax_builtins::registerOf(index)];
}
inline unsigned ipujax_ipu_uget(int index) {
  return ipujax_registers::worker().upper[ipujax_builtins::registerOf(index)];
}
inline float ipujax_ipu_ugetf(int index) {
  return ipujax_lanes::bits<float>(ipujax_ipu_uget(index));
}
inline void ipujax_ipu_put(unsigned value, int index) {
  ipujax_registers::worker().lower[ipujax_builtins::registerOf(index)] = value;
}
inline void ipujax_ipu_uput(unsigned value, int index) {
  ipujax_registers::worker().upper[ipujax_builtins::registerOf(index)] = value;
  if (index == (CSR_W_FP_CLR__INDEX & CSR_UPPER_MASK)) ipujax_ipu_aacc_zero();
}
inline void ipujax_ipu_uput(int value, int index) {
  ipujax_ipu_uput(static_cast<unsigned>(value), index);
}
inline void ipujax_ipu_uput(float value, int index) {
  ipujax_ipu_uput(ipujax_lanes::bits<unsigned>(value), index);
}
inline void ipujax_ipu_uputf(float value, int index) { ipujax_ipu_uput(value, index); }
inline bool ipujax_ipu_is_worker_mode() { return true; }
inline unsigned ipujax_ipu_get_worker_id() { return ipujax_registers::worker().worker; }
inline unsigned ipujax_ipu_get_tile_id() { return ipujax_registers::worker().tile; }
inline void* ipujax_ipu_get_vertex_base() { return ipujax_registers::worker().vertex; }
inline unsigned ipujax_ipu_get_scount_l() {
  return static_cast<unsigned>(ipujax_registers::cycles());
}
inline unsigned ipujax_ipu_get_scount_u() {
  return static_cast<unsigned>(ipujax_registers::cycles() >> 32);
}

// Loads of weights and packed addresses are not modelled: the linker reports them if a vertex needs
// them (engine/codelets/WorkerCalls.hpp).
void ipujax_no_assembly_ld128putcs(unsigned index);
void ipujax_no_assembly_ld64putcs(unsigned index);
ipujax_vectors::uint2 ipujax_no_assembly_tapack(const void* a, const void* b, const void* c);
#define __builtin_ipu_ld128putcs ipujax_no_assembly_ld128putcs
#define __builtin_ipu_ld64putcs ipujax_no_assembly_ld64putcs
#define __builtin_ipu_tapack ipujax_no_assembly_tapack

#include "ipu_builtin_names.h"
