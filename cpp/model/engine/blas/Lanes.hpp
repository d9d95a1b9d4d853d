#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/blas/MicroKernel.hpp"
#include "engine/simd/Registers.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/// Vectors of an arithmetic's words. Included by *.simd.cpp only.
namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE {

constexpr int kVectorBytes = simd::IPUJAX_ISA_NAMESPACE::kRegisterBytes;

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef double DoubleVector __attribute__((vector_size(kVectorBytes)));
typedef std::uint32_t IntVector __attribute__((vector_size(kVectorBytes)));
typedef std::uint64_t LongIntVector __attribute__((vector_size(kVectorBytes)));

/// Operations of the compiler's own vectors.
template <class W, class V>
struct PlainLanes {
  using Vec = V;
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(W));
  static Vec load(const W* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(W* p, Vec v) { std::memcpy(p, &v, sizeof v); }
  static Vec splat(W x) { return x - Vec{}; }
  static Vec add(Vec a, Vec b) { return a + b; }
  static Vec multiplyAdd(Vec a, Vec b, Vec c) { return a * b + c; }
};

template <class M>
struct Lanes;
template <>
struct Lanes<Doubles> : PlainLanes<double, DoubleVector> {};
template <>
struct Lanes<Ints> : PlainLanes<std::uint32_t, IntVector> {};
template <>
struct Lanes<LongInts> : PlainLanes<std::uint64_t, LongIntVector> {};

template <>
struct Lanes<Floats> : PlainLanes<float, FloatVector> {
#if defined(__AVX512F__)
  static Vec multiplyAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__)
  static Vec multiplyAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
#endif
};

template <>
struct Lanes<ShortPairs> : PlainLanes<std::uint32_t, IntVector> {
  static Vec multiplyAdd(Vec a, Vec b, Vec c) { return c + multiplyPairs(a, b); }

 private:
  /// Sum of a word's two products; two products -32768 * -32768 wrap, as they must.
  static Vec multiplyPairs(Vec a, Vec b) {
#if defined(__AVX512BW__)
    return reinterpret_cast<Vec>(
        _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
    return reinterpret_cast<Vec>(
        _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
    return reinterpret_cast<Vec>(
        _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
    return low(a) * low(b) + high(a) * high(b);
#endif
  }
#if !defined(__SSE2__)
  static Vec high(Vec x) { return (x >> 16) - ((x >> 31) << 16); }
  static Vec low(Vec x) { return high(x << 16); }
#endif
};

/// The largest tile of accumulators that leaves registers for the operands: rows for each number
/// of panels, 0 where there is no such kernel; and the number of panels for many rows.
struct TileSizes {
  int rows[kMaxPanels + 1];
  int panels;
};
template <class M>
constexpr TileSizes tileSizes() {
#if defined(__AVX512F__)
  return {{0, 14, 14, 8, 6}, 4};
#else
  // No instruction multiplies 64-bit words, so their products need registers for the parts.
  constexpr bool kParts = std::is_same_v<M, LongInts>;
#if defined(__AVX2__)
  return {{0, kParts ? 3 : 6, 1, 1, 1}, 1};
#else
  return {{0, kParts ? 1 : 3, 0, 0, 0}, 1};
#endif
#endif
}

}  // namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE
