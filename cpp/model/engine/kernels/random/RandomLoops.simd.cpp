#include "engine/kernels/random/RandomLoops.hpp"

#include <algorithm>

#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

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

void dropFloats(const std::uint32_t* words, std::int64_t step, const float* in, float* out,
                std::int64_t n, Kept kept, double scale) {
  const auto one = [&](std::uint32_t word, std::int64_t i) {
    const auto value = static_cast<float>(static_cast<double>(in[i]) * scale);
    out[i] = isKept(word, kept) ? value : 0.0f;
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

void dropHalves(const std::uint32_t* words, std::int64_t step, const std::uint16_t* in,
                std::uint16_t* out, std::int64_t n, Kept kept, double scale) {
  constexpr std::int64_t kBlock = 512;
  alignas(64) float values[kBlock];
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t count = std::min(kBlock, n - at);
    simd::halfToFloat(in + at, values, count);
    dropFloats(words + at * step, step, values, values, count, kept, scale);
    simd::floatToHalf(values, out + at, count);
  }
}

}  // namespace

extern const RandomLoops kRandomLoops;
const RandomLoops kRandomLoops = {uniform, keptLoop, scaled, dropFloats, dropHalves};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
