#include "engine/kernels/conv/ConvGroups.hpp"

#include <cstring>

namespace ipujax::engine::convolution::IPUJAX_ISA_NAMESPACE {

template <class W>
void groupLine(W* sums, const W* in, std::int64_t step, const W* weights, std::int64_t groups,
               std::int64_t count) {
  for (std::int64_t x = 0; x < count; ++x) {
    W* __restrict s = sums + x * groups;
    const W* v = in + x * step;
    for (std::int64_t g = 0; g < groups; ++g) s[g] += v[g] * weights[g];
  }
}

namespace {

constexpr std::int64_t kBlockBytes = 64;
template <class W>
struct BlockOf;
template <>
struct BlockOf<float> {
  typedef float type __attribute__((vector_size(kBlockBytes)));
};
template <>
struct BlockOf<double> {
  typedef double type __attribute__((vector_size(kBlockBytes)));
};
template <>
struct BlockOf<std::uint32_t> {
  typedef std::uint32_t type __attribute__((vector_size(kBlockBytes)));
};
template <>
struct BlockOf<std::uint64_t> {
  typedef std::uint64_t type __attribute__((vector_size(kBlockBytes)));
};

/// kBlocks blocks of groups stay in registers while k runs.
template <int kBlocks, class W>
void sumBlocks(W* sums, const W* in, std::int64_t step, const W* weights, std::int64_t groups,
               std::int64_t count) {
  constexpr auto kWidth = kBlockBytes / static_cast<std::int64_t>(sizeof(W));
  using Block = typename BlockOf<W>::type;
  Block acc[kBlocks];
  std::memcpy(acc, sums, sizeof acc);
  for (std::int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      Block x, w;
      std::memcpy(&x, in + k * step + b * kWidth, sizeof x);
      std::memcpy(&w, weights + k * groups + b * kWidth, sizeof w);
      acc[b] += x * w;
    }
  }
  std::memcpy(sums, acc, sizeof acc);
}

}  // namespace

template <class W>
void groupSum(W* sums, const W* in, std::int64_t step, const W* weights, std::int64_t groups,
              std::int64_t count) {
  constexpr auto kWidth = kBlockBytes / static_cast<std::int64_t>(sizeof(W));
  std::int64_t g = 0;
  for (; g + 4 * kWidth <= groups; g += 4 * kWidth)
    sumBlocks<4>(sums + g, in + g, step, weights + g, groups, count);
  for (; g + kWidth <= groups; g += kWidth)
    sumBlocks<1>(sums + g, in + g, step, weights + g, groups, count);
  for (; g < groups; ++g)
    for (std::int64_t k = 0; k < count; ++k) sums[g] += in[k * step + g] * weights[k * groups + g];
}

#define IPUJAX_INSTANTIATE(W)                                                                   \
  template void groupLine<W>(W*, const W*, std::int64_t, const W*, std::int64_t, std::int64_t); \
  template void groupSum<W>(W*, const W*, std::int64_t, const W*, std::int64_t, std::int64_t);
IPUJAX_INSTANTIATE(float)
IPUJAX_INSTANTIATE(double)
IPUJAX_INSTANTIATE(std::uint32_t)
IPUJAX_INSTANTIATE(std::uint64_t)
#undef IPUJAX_INSTANTIATE

}  // namespace ipujax::engine::convolution::IPUJAX_ISA_NAMESPACE
