#include "engine/kernels/ImageLoops.hpp"

#include <algorithm>

#include "engine/simd/VectorOps.hpp"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr int kPixels = 64;  // at a time, in arrays that whole vectors fit into
constexpr int kValues = 3 * kPixels;

/// The scales of kPixels pixels, so that all channels are computed in one loop.
struct Tiled {
  explicit Tiled(const ChannelScales& by) {
    for (int i = 0; i < kValues; ++i) {
      offsets[i] = by.offsets[i % 3];
      scales[i] = by.scales[i % 3];
    }
  }
  alignas(64) float offsets[kValues];
  alignas(64) float scales[kValues];
};

#if defined(__AVX512F__)
using Floats = float __attribute__((vector_size(64)));
using Ints = std::int32_t __attribute__((vector_size(64)));

/// Four pixels of four channels: the fourth of each is 0.
template <class V>
inline V spread(V x) {
  return __builtin_shufflevector(x, V{}, 0, 1, 2, 16, 3, 4, 5, 16, 6, 7, 8, 16, 9, 10, 11, 16);
}

template <class V, class T>
inline V load(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

inline Floats roundedToHalf(Floats x) {
  return (Floats)_mm512_maskz_cvtph_ps(
      0xffff, _mm512_maskz_cvtps_ph(0xffff, (__m512)x, _MM_FROUND_TO_NEAREST_INT));
}

/// The scales of four pixels.
struct Four {
  explicit Four(const ChannelScales& by) {
    for (int i = 0; i < 16; ++i) {
      offsets[i] = i % 4 < 3 ? by.offsets[i % 4] : 0;
      scales[i] = i % 4 < 3 ? by.scales[i % 4] : 0;
      channels[i] = i % 4 < 3 ? -1 : 0;
    }
  }
  Floats offsets, scales;
  Ints channels;
};

/// Four pixels at a time, as long as 16 values can be read. Returns how many are done.
inline std::int64_t inRegisters(const float* in, float* out, std::int64_t pixels,
                                const ChannelScales& by) {
  const Four four(by);
  std::int64_t at = 0;
  for (; 3 * at + 16 <= 3 * pixels; at += 4) {
    const Floats x = spread(load<Floats>(in + 3 * at));
    const Floats y = (x * by.scale - four.offsets) * four.scales;
    const Ints kept = (Ints)y & four.channels;
    __builtin_memcpy(out + 4 * at, &kept, sizeof kept);
  }
  return at;
}

inline std::int64_t inRegisters(const std::uint16_t* in, std::uint16_t* out, std::int64_t pixels,
                                const ChannelScales& by) {
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  const Four four(by);
  std::int64_t at = 0;
  for (; 3 * at + 16 <= 3 * pixels; at += 4) {
    const auto x = (__m256i)spread(load<Halves>(in + 3 * at));
    const Floats scaled = roundedToHalf((Floats)_mm512_maskz_cvtph_ps(0xffff, x) * by.scale);
    const Floats y = roundedToHalf(scaled - four.offsets) * four.scales;
    const __m512 kept = (__m512)((Ints)y & four.channels);
    const __m256i made = _mm512_maskz_cvtps_ph(0xffff, kept, _MM_FROUND_TO_NEAREST_INT);
    __builtin_memcpy(out + 4 * at, &made, sizeof made);
  }
  return at;
}
#else
template <class In, class Out>
inline std::int64_t inRegisters(const In*, Out*, std::int64_t, const ChannelScales&) {
  return 0;
}
#endif

/// compute(first pixel, their number, values) for the three channels of kPixels pixels at a time;
/// the values are stored as four.
template <class Out, class Compute>
inline void eachBlock(Out* out, std::int64_t first, std::int64_t pixels, Compute compute) {
  for (std::int64_t at = first; at < pixels; at += kPixels) {
    const auto count = static_cast<int>(std::min<std::int64_t>(kPixels, pixels - at));
    alignas(64) Out values[kValues];
    compute(at, count, values);
    Out* to = out + 4 * at;
    for (int i = 0; i < count; ++i) {
      to[4 * i] = values[3 * i];
      to[4 * i + 1] = values[3 * i + 1];
      to[4 * i + 2] = values[3 * i + 2];
      to[4 * i + 3] = 0;
    }
  }
}

void floats(const float* in, float* out, std::int64_t pixels, const ChannelScales& by) {
  const Tiled tiled(by);
  const float scale = by.scale;
  eachBlock(out, inRegisters(in, out, pixels, by), pixels,
            [&](std::int64_t at, int count, float* values) {
              const float* from = in + 3 * at;
              for (int k = 0; k < 3 * count; ++k)
                values[k] = (from[k] * scale - tiled.offsets[k]) * tiled.scales[k];
            });
}

void halves(const std::uint16_t* in, std::uint16_t* out, std::int64_t pixels,
            const ChannelScales& by) {
  const Tiled tiled(by);
  const float scale = by.scale;
  eachBlock(out, inRegisters(in, out, pixels, by), pixels,
            [&](std::int64_t at, int count, std::uint16_t* values) {
              alignas(64) float x[kValues];
              const int n = 3 * count;
              simd::halfToFloat(in + 3 * at, x, n);
              for (int k = 0; k < n; ++k) x[k] *= scale;
              simd::roundToHalf(x, n);
              for (int k = 0; k < n; ++k) x[k] -= tiled.offsets[k];
              simd::roundToHalf(x, n);
              for (int k = 0; k < n; ++k) x[k] *= tiled.scales[k];
              simd::floatToHalf(x, values, n);
            });
}

}  // namespace

extern const ImageLoops kImageLoops;
const ImageLoops kImageLoops = {floats, halves};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
