#include "poplin/ConvGroups.hpp"

#include <cstring>

namespace poplin::host::IPUJAX_ISA_NAMESPACE {

void groupLine(float* sums, const float* in, std::int64_t step, const float* weights,
               std::int64_t groups, std::int64_t count) {
  for (std::int64_t x = 0; x < count; ++x) {
    float* __restrict s = sums + x * groups;
    const float* v = in + x * step;
    for (std::int64_t g = 0; g < groups; ++g) s[g] += v[g] * weights[g];
  }
}

namespace {

typedef float Block __attribute__((vector_size(64)));
constexpr std::int64_t kBlock = 16;

inline void load(const float* p, Block& out) { std::memcpy(&out, p, sizeof out); }

/// kBlocks blocks of groups stay in registers while k runs.
template <int kBlocks>
void sumBlocks(float* sums, const float* in, std::int64_t step, const float* weights,
               std::int64_t groups, std::int64_t count) {
  Block acc[kBlocks];
  for (int b = 0; b < kBlocks; ++b) load(sums + b * kBlock, acc[b]);
  for (std::int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      Block x, w;
      load(in + k * step + b * kBlock, x);
      load(weights + k * groups + b * kBlock, w);
      acc[b] += x * w;
    }
  }
  for (int b = 0; b < kBlocks; ++b) std::memcpy(sums + b * kBlock, &acc[b], sizeof acc[b]);
}

}  // namespace

void groupSum(float* sums, const float* in, std::int64_t step, const float* weights,
              std::int64_t groups, std::int64_t count) {
  std::int64_t g = 0;
  for (; g + 4 * kBlock <= groups; g += 4 * kBlock)
    sumBlocks<4>(sums + g, in + g, step, weights + g, groups, count);
  for (; g + kBlock <= groups; g += kBlock)
    sumBlocks<1>(sums + g, in + g, step, weights + g, groups, count);
  for (; g < groups; ++g)
    for (std::int64_t k = 0; k < count; ++k) sums[g] += in[k * step + g] * weights[k * groups + g];
}

}  // namespace poplin::host::IPUJAX_ISA_NAMESPACE
