#include "engine/kernels/Ctc.hpp"

#include "engine/simd/FloatMath.hpp"

namespace ipujax::engine::ctc {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

using namespace simd::IPUJAX_ISA_NAMESPACE;

/// exp(x) for x <= 0; what is below the smallest normal result becomes about that.
IPUJAX_INLINE float expBelow(float x) { return expFloatInRange(x < -87.0f ? -87.0f : x); }

/// log(x) for x in [1, 3].
IPUJAX_INLINE float logFew(float x) {
  const auto [e, m] = splitLog(x);
  return logSum(e, m - 1.0f);
}

void step(const float* __restrict now, const float* __restrict skip, const float* __restrict emit,
          float* __restrict next, std::int64_t n) {
  for (std::int64_t s = 0; s < n; ++s) {
    const float a = now[s], b = now[s - 1], c = now[s - 2] + skip[s];
    const float ab = a > b ? a : b, most = ab > c ? ab : c;
    const float sum = expBelow(a - most) + expBelow(b - most) + expBelow(c - most);
    const float found = most + logFew(sum) + emit[s];
    next[s] = found < kLogZero ? kLogZero : found;
  }
}

void posterior(const float* __restrict a, const float* __restrict b, const float* __restrict emit,
               float total, float* __restrict out, std::int64_t n) {
  for (std::int64_t s = 0; s < n; ++s) out[s] = expFloat(a[s] + b[s] - emit[s] - total);
}

void exponentials(const float* __restrict x, float* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = expFloat(x[i]);
}

void logAdd(const float* a, const float* b, float* out, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = a[i], y = b[i], delta = x - y, most = x > y ? x : y;
    const float sum = most + log1pFloat(expFloat(-absOf(delta)));
    out[i] = delta == delta ? sum : x + y;
  }
}

/// ctc::keyOf, which must not be compiled here for another CPU's sake.
IPUJAX_INLINE std::int32_t keyFrom(float x) {
  const auto bits = static_cast<std::int32_t>(bitsOf(x));
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

std::int32_t longer(const float* __restrict logs, float total, std::int32_t* __restrict keys,
                    std::int64_t n) {
  std::int32_t most = keyFrom(-kInfinity);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t key = keyFrom(logs[i] + total);
    keys[i] = key;
    most = key > most ? key : most;
  }
  return most;
}

}  // namespace

Loops ctcLoops() { return {step, posterior, exponentials, logAdd, longer}; }

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::ctc
