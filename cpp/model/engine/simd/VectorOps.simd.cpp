#include "engine/simd/VectorOps.hpp"

#include <cstring>

#include "engine/ElementType.hpp"
#include "engine/simd/HalfMath.hpp"
#ifdef __F16C__
#include <immintrin.h>
#endif

/// Half conversion, random bits, fill, strided copies.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

void halfToFloat(const std::uint16_t* in, float* out, std::int64_t n) {
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= n; k += 16)
    _mm512_storeu_ps(out + k,
                     _mm512_maskz_cvtph_ps(
                         0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + k))));
#elif defined(__F16C__)
  for (; k + 8 <= n; k += 8)
    _mm256_storeu_ps(out + k,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + k))));
#endif
#if defined(__F16C__)
  for (; k < n; ++k) out[k] = _cvtsh_ss(in[k]);
#endif
  for (; k < n; ++k) out[k] = halfBitsToFloat(in[k]);
}

void floatToHalf(const float* in, std::uint16_t* out, std::int64_t n) {
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= n; k += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out + k),
        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(in + k), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (; k + 8 <= n; k += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + k), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
  for (; k < n; ++k) out[k] = _cvtss_sh(in[k], _MM_FROUND_TO_NEAREST_INT);
#endif
  for (; k < n; ++k) out[k] = floatToHalfBits(in[k]);
}

void roundToHalf(float* values, std::int64_t n) {
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= n; k += 16)
    _mm512_storeu_ps(
        values + k,
        _mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(values + k),
                                                            _MM_FROUND_TO_NEAREST_INT)));
#elif defined(__F16C__)
  for (; k + 8 <= n; k += 8)
    _mm256_storeu_ps(values + k, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(values + k),
                                                                 _MM_FROUND_TO_NEAREST_INT)));
#endif
  for (; k < n; ++k) values[k] = roundedToHalf(values[k]);
}

namespace {
template <class T>
void gatherLoop(const T* in, std::int64_t stride, T* out, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    const T value = n > 0 ? *in : T{};
    for (std::int64_t k = 0; k < n; ++k) out[k] = value;
  } else if (stride == -1) {
    IPUJAX_IVDEP
    for (std::int64_t k = 0; k < n; ++k) out[k] = in[-k];
  } else {
    for (std::int64_t k = 0; k < n; ++k) out[k] = in[k * stride];
  }
}
template <class T>
void scatterLoop(const T* in, T* out, std::int64_t stride, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t k = 0; k < n; ++k) out[k * stride] = in[k];
  }
}
/// MurmurHash3's final mix of 32 bits.
IPUJAX_INLINE std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}
}  // namespace

void randomBits(void* out, std::int64_t n, std::uint64_t seed, std::uint64_t first) {
  auto* words = static_cast<std::uint32_t*>(out);
  const auto low = static_cast<std::uint32_t>(seed);
  const auto high = static_cast<std::uint32_t>((seed >> 32) + (first >> 32));
  const auto begin = static_cast<std::uint32_t>(first);
  for (std::int64_t k = 0; k < n; ++k)
    words[k] = mixed(mixed(begin + static_cast<std::uint32_t>(k) + low) ^ high);
}
void fill(void* out, const void* value, std::size_t bytes, std::int64_t n) {
  withBytes(bytes, [&]<class T>(T) {
    T v;
    std::memcpy(&v, value, sizeof(T));
    auto* o = static_cast<T*>(out);
    for (std::int64_t k = 0; k < n; ++k) o[k] = v;
  });
}
void gatherStrided(const void* in, std::int64_t stride, void* out, std::size_t bytes,
                   std::int64_t n) {
  withBytes(bytes, [&]<class T>(T) {
    gatherLoop(static_cast<const T*>(in), stride, static_cast<T*>(out), n);
  });
}
void scatterStrided(const void* in, void* out, std::int64_t stride, std::size_t bytes,
                    std::int64_t n) {
  withBytes(bytes, [&]<class T>(T) {
    scatterLoop(static_cast<const T*>(in), static_cast<T*>(out), stride, n);
  });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
