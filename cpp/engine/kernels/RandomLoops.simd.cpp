#include "engine/kernels/RandomLoops.hpp"

#include "engine/simd/HalfMath.hpp"

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

namespace math = simd::IPUJAX_ISA_NAMESPACE;

void uniform(const std::uint32_t* words, float* out, std::int64_t n, double low, double range) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto unit = static_cast<std::int32_t>(words[i] >> 8);
    out[i] = static_cast<float>(low + range * (unit * 0x1p-24));
  }
}

inline bool isKept(std::uint32_t word, Kept kept) { return (word <= kept.last) & kept.any; }

void keptLoop(const std::uint32_t* words, float* out, std::int64_t n, Kept kept) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = isKept(words[i], kept) ? 1.0f : 0.0f;
}

void scaled(float* values, std::int64_t n, double mean, double deviation) {
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = static_cast<float>(mean + deviation * static_cast<double>(values[i]));
}

inline float times(float x, double scale) {
  return static_cast<float>(static_cast<double>(x) * scale);
}

template <class T, class Load, class Store>
inline void drop(const std::uint32_t* words, std::int64_t step, const T* in, T* out, std::int64_t n,
                 Kept kept, double scale, Load load, Store store) {
  const auto one = [&](std::uint32_t word, std::int64_t i) {
    const T value = store(times(load(in[i]), scale));
    out[i] = isKept(word, kept) ? value : T(0);
  };
  if (step == 0) {
    const std::uint32_t word = words[0];
    for (std::int64_t i = 0; i < n; ++i) one(word, i);
  } else if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) one(words[i], i);
  } else {
    for (std::int64_t i = 0; i < n; ++i) one(words[i * step], i);
  }
}

void dropFloats(const std::uint32_t* words, std::int64_t step, const float* in, float* out,
                std::int64_t n, Kept kept, double scale) {
  const auto same = [](float x) { return x; };
  drop(words, step, in, out, n, kept, scale, same, same);
}

void dropHalves(const std::uint32_t* words, std::int64_t step, const std::uint16_t* in,
                std::uint16_t* out, std::int64_t n, Kept kept, double scale) {
  drop(
      words, step, in, out, n, kept, scale,
      [](std::uint16_t x) { return math::halfBitsToFloat(x); },
      [](float x) { return math::floatToHalfBits(x); });
}

void toHalves(const float* in, std::uint16_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = math::floatToHalfBits(in[i]);
}

}  // namespace

extern const RandomLoops kRandomLoops;
const RandomLoops kRandomLoops = {uniform, keptLoop, scaled, dropFloats, dropHalves, toHalves};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
