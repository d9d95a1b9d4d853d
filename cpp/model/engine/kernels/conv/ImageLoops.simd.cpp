#include "engine/kernels/conv/ImageLoops.hpp"

#include <algorithm>

#include "engine/simd/Registers.hpp"
#include "engine/simd/VectorOps.hpp"
#if defined(__F16C__)
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

constexpr int kLanes = simd::IPUJAX_ISA_NAMESPACE::kRegisterBytes / 4;
constexpr int kPerVector = kLanes / 4;  // pixels of four channels
using Floats = float __attribute__((vector_size(kLanes * 4)));
using Ints = std::int32_t __attribute__((vector_size(kLanes * 4)));

template <class V, class T>
inline V load(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

/// Spreads pixels of three channels to four channels, the fourth of which is arbitrary.
inline Floats spread(Floats x) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(x, x, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
#elif defined(__AVX2__)
  return __builtin_shufflevector(x, x, 0, 1, 2, 2, 3, 4, 5, 5);
#else
  return x;
#endif
}

/// The scales of a vector of pixels.
struct PixelScales {
  explicit PixelScales(const ChannelScales& by) {
    for (int i = 0; i < kLanes; ++i) {
      offsets[i] = i % 4 < 3 ? by.offsets[i % 4] : 0;
      scales[i] = i % 4 < 3 ? by.scales[i % 4] : 1;
      channels[i] = i % 4 < 3 ? -1 : 0;
    }
  }
  Floats kept(Floats x) const { return (Floats)((Ints)x & channels); }
  Floats offsets, scales;
  Ints channels;
};

/// Computes a vector of pixels at a time while a whole vector of values can be read. Returns the
/// number of pixels done.
inline std::int64_t inRegisters(const float* in, float* out, std::int64_t pixels,
                                const ChannelScales& by) {
  const PixelScales all(by);
  std::int64_t at = 0;
  for (; 3 * at + kLanes <= 3 * pixels; at += kPerVector) {
    const Floats x = spread(load<Floats>(in + 3 * at));
    const Floats y = all.kept((x * by.scale - all.offsets) * all.scales);
    __builtin_memcpy(out + 4 * at, &y, sizeof y);
  }
  return at;
}

#if defined(__F16C__)
#if defined(__AVX512F__)
using Halves = __m256i;
inline Floats widened(Halves x) { return (Floats)_mm512_maskz_cvtph_ps(0xffff, x); }
inline Halves narrowed(Floats x) {
  return _mm512_maskz_cvtps_ph(0xffff, (__m512)x, _MM_FROUND_TO_NEAREST_INT);
}
#else
using Halves = __m128i;
inline Floats widened(Halves x) { return (Floats)_mm256_cvtph_ps(x); }
inline Halves narrowed(Floats x) { return _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT); }
#endif

inline std::int64_t inRegisters(const std::uint16_t* in, std::uint16_t* out, std::int64_t pixels,
                                const ChannelScales& by) {
  const auto rounded = [](Floats x) { return widened(narrowed(x)); };
  const PixelScales all(by);
  std::int64_t at = 0;
  for (; 3 * at + kLanes <= 3 * pixels; at += kPerVector) {
    const Floats x = rounded(spread(widened(load<Halves>(in + 3 * at))) * by.scale);
    const Halves y = narrowed(all.kept(rounded(x - all.offsets) * all.scales));
    __builtin_memcpy(out + 4 * at, &y, sizeof y);
  }
  return at;
}
#else
inline std::int64_t inRegisters(const std::uint16_t*, std::uint16_t*, std::int64_t,
                                const ChannelScales&) {
  return 0;
}
#endif

/// Calls compute(first pixel, count, values) for the three channels of kPixels pixels at a time;
/// stores the values as pixels of four channels.
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
