#include "engine/blas/MicroKernel.hpp"

#include <bit>
#include <cstring>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE {
namespace {

#if defined(__AVX512F__)
using Vec = __m512;
constexpr int kLanes = 16;
constexpr int kRowsFor[kMaxPanels + 1] = {0, 14, 14, 8, 6};
constexpr int kPanels = 4;
inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec splat(float x) { return _mm512_set1_ps(x); }
inline Vec zero() { return _mm512_setzero_ps(); }
inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec multiplyAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__)
using Vec = __m256;
constexpr int kLanes = 8;
constexpr int kRowsFor[kMaxPanels + 1] = {0, 6, 0, 0, 0};
constexpr int kPanels = 1;
inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline Vec splat(float x) { return _mm256_set1_ps(x); }
inline Vec zero() { return _mm256_setzero_ps(); }
inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec multiplyAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
#else
typedef float Vec __attribute__((vector_size(16)));
constexpr int kLanes = 4;
constexpr int kRowsFor[kMaxPanels + 1] = {0, 3, 0, 0, 0};
constexpr int kPanels = 1;
inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
inline Vec splat(float x) { return Vec{x, x, x, x}; }
inline Vec zero() { return Vec{0, 0, 0, 0}; }
inline Vec add(Vec a, Vec b) { return a + b; }
inline Vec multiplyAdd(Vec a, Vec b, Vec c) { return a * b + c; }
#endif

constexpr int kPerPanel = static_cast<int>(kPanel) / kLanes;

template <int kRows, int kVectors>
inline void writeTile(const MicroCall& call, const Vec (&acc)[kRows][kVectors]) {
  const bool whole = call.cols == kVectors * kLanes;
  for (int i = 0; i < kRows; ++i) {
    float* c = call.c + i * call.c_row;
    if (whole) {
      for (int j = 0; j < kVectors; ++j) {
        float* p = c + j * kLanes;
        store(p, call.accumulate ? add(load(p), acc[i][j]) : acc[i][j]);
      }
    } else {
      alignas(64) float row[kVectors * kLanes];
      for (int j = 0; j < kVectors; ++j) store(row + j * kLanes, acc[i][j]);
      for (std::int64_t j = 0; j < call.cols; ++j) c[j] = call.accumulate ? c[j] + row[j] : row[j];
    }
  }
}

/// kRows x kNumPanels panels of accumulators, all in registers; a pointer serves three rows.
template <int kRows, int kNumPanels>
void tile(const MicroCall& call) {
  constexpr int kVectors = kNumPanels * kPerPanel;
  constexpr int kTriples = (kRows + 2) / 3;
  Vec acc[kRows][kVectors];
#pragma GCC unroll 64
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) acc[i][j] = zero();
  const std::int64_t row = call.a_row;
  const std::int64_t step = call.a_k;
  const std::int64_t b_k = call.b_k;
  const std::int64_t b_panel = call.b_panel;
  const float* b = call.b;
  for (std::int64_t s = 0; s < call.num_segments; ++s) {
    const float* base = call.a + (call.segments ? call.segments[s] : 0);
    const float* p[kTriples];
    for (int t = 0; t < kTriples; ++t) p[t] = base + 3 * t * row;
    for (std::int64_t k = 0; k < call.kc; ++k) {
      Vec bv[kVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j)
        bv[j] = load(b + (j / kPerPanel) * b_panel + (j % kPerPanel) * kLanes);
#pragma GCC unroll 64
      for (int i = 0; i < kRows; ++i) {
        const Vec av = splat(p[i / 3][(i % 3) * row]);
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) acc[i][j] = multiplyAdd(av, bv[j], acc[i][j]);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTriples; ++t) p[t] += step;
      b += b_k;
    }
  }
  writeTile<kRows, kVectors>(call, acc);
}

template <int kNumPanels, int... kRows>
void fill(MicroTable& table, std::integer_sequence<int, kRows...>) {
  ((table.fn[kNumPanels][kRows + 1] = &tile<kRows + 1, kNumPanels>), ...);
}

#if defined(__AVX2__)
void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; ++i) out[i] = _cvtsh_ss(in[i]);
}

void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) out[i] = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
}
#else
float widen(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 31u;
  const std::uint32_t mantissa = h & 1023u;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  const std::uint32_t e = exponent == 31 ? 255u : exponent + 112u;
  std::uint32_t bits = sign | (e << 23) | (mantissa << 13);
  if (exponent == 31 && mantissa) bits |= 0x400000u;
  return std::bit_cast<float>(bits);
}

std::uint16_t narrow(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below the smallest normal half: let float addition round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = widen(in[i]);
}

void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = narrow(in[i]);
}
#endif

#if defined(__AVX2__)
/// 8 columns of 8 k: rows of `src` become columns of `dst`.
inline void transpose8(const float* src, std::int64_t ld, float* dst) {
  __m256 r[8], t[8];
  for (int j = 0; j < 8; ++j) r[j] = _mm256_loadu_ps(src + j * ld);
  for (int j = 0; j < 4; ++j) {
    t[2 * j] = _mm256_unpacklo_ps(r[2 * j], r[2 * j + 1]);
    t[2 * j + 1] = _mm256_unpackhi_ps(r[2 * j], r[2 * j + 1]);
  }
  for (int h = 0; h < 2; ++h) {
    r[4 * h] = _mm256_shuffle_ps(t[4 * h], t[4 * h + 2], 0x44);
    r[4 * h + 1] = _mm256_shuffle_ps(t[4 * h], t[4 * h + 2], 0xee);
    r[4 * h + 2] = _mm256_shuffle_ps(t[4 * h + 1], t[4 * h + 3], 0x44);
    r[4 * h + 3] = _mm256_shuffle_ps(t[4 * h + 1], t[4 * h + 3], 0xee);
  }
  for (int k = 0; k < 4; ++k) {
    _mm256_storeu_ps(dst + k * kPanel, _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
    _mm256_storeu_ps(dst + (k + 4) * kPanel, _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
  }
}
#endif

void packTransposed(const float* src, std::int64_t ld, std::int64_t kc, std::int64_t cols,
                    float* dst) {
  std::int64_t k = 0;
#if defined(__AVX2__)
  if (cols == kPanel) {
    for (; k + 8 <= kc; k += 8) {
      transpose8(src + k, ld, dst + k * kPanel);
      transpose8(src + 8 * ld + k, ld, dst + k * kPanel + 8);
    }
  }
#endif
  for (; k < kc; ++k) {
    for (std::int64_t j = 0; j < cols; ++j) dst[k * kPanel + j] = src[j * ld + k];
    for (std::int64_t j = cols; j < kPanel; ++j) dst[k * kPanel + j] = 0.0f;
  }
}

float dot(const float* x, const float* y, std::int64_t n) {
  constexpr int kChains = 4;
  Vec acc[kChains];
  for (auto& a : acc) a = zero();
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes)
    for (int c = 0; c < kChains; ++c)
      acc[c] = multiplyAdd(load(x + i + c * kLanes), load(y + i + c * kLanes), acc[c]);
  for (; i + kLanes <= n; i += kLanes) acc[0] = multiplyAdd(load(x + i), load(y + i), acc[0]);
  alignas(64) float lanes[kLanes];
  store(lanes, add(add(acc[0], acc[1]), add(acc[2], acc[3])));
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  float sum = lanes[0];
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

MicroTable make() {
  MicroTable table{};
  table.max_panels = kPanels;
  for (int p = 0; p <= kMaxPanels; ++p) table.max_rows[p] = kRowsFor[p];
  fill<1>(table, std::make_integer_sequence<int, kRowsFor[1]>{});
  fill<2>(table, std::make_integer_sequence<int, kRowsFor[2]>{});
  fill<3>(table, std::make_integer_sequence<int, kRowsFor[3]>{});
  fill<4>(table, std::make_integer_sequence<int, kRowsFor[4]>{});
  table.halfToFloat = halfToFloat;
  table.floatToHalf = floatToHalf;
  table.packTransposed = packTransposed;
  table.dot = dot;
  return table;
}

}  // namespace

const MicroTable& microTable() {
  static const MicroTable table = make();
  return table;
}

}  // namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE
