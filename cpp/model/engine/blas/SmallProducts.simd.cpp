#include "engine/blas/SmallProducts.hpp"

#include <algorithm>

#include "engine/blas/Lanes.hpp"

namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE {
namespace {

using L = Lanes<Floats>;
constexpr int kLanes = 16;
constexpr int kVectors = kLanes / L::kCount;

/// One element of each product.
struct alignas(64) Line {
  float lane[kLanes];
};

void load(const ConstMatrix& m, std::int64_t rows, std::int64_t cols, std::int64_t first,
          std::int64_t step, std::int64_t count, Line* lines) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j, ++lines) {
      const float* from = m.words<float>(i, j) + first * step;
      for (std::int64_t l = 0; l < count; ++l) lines->lane[l] = from[l * step];
    }
}

template <bool kFused>
L::Vec multiplyAdd(L::Vec a, L::Vec b, L::Vec c) {
  if constexpr (kFused) return L::multiplyAdd(a, b, c);
  return a * b + c;
}

template <bool kFused>
Line sumOf(const Line* row, const Line* column, std::int64_t k, std::int64_t column_step) {
  L::Vec sum[kVectors] = {};
  for (std::int64_t i = 0; i < k; ++i)
    for (int v = 0; v < kVectors; ++v)
      sum[v] = multiplyAdd<kFused>(L::load(row[i].lane + v * L::kCount),
                                   L::load(column[i * column_step].lane + v * L::kCount), sum[v]);
  Line line;
  for (int v = 0; v < kVectors; ++v) L::store(line.lane + v * L::kCount, sum[v]);
  return line;
}

template <bool kFused>
void multiply(const SmallProducts& p, std::int64_t begin, std::int64_t end) {
  const Gemm& g = p.first;
  Line a[kMostSmallElements] = {}, b[kMostSmallElements] = {};
  for (std::int64_t first = begin; first < end; first += kLanes) {
    const std::int64_t count = std::min<std::int64_t>(kLanes, end - first);
    load(g.a, g.m, g.k, first, p.a_step, count, a);
    load(g.b, g.k, g.n, first, p.b_step, count, b);
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        const Line sums = sumOf<kFused>(a + i * g.k, b + j, g.k, g.n);
        float* to = static_cast<float*>(g.c.data) + i * g.c.row + j * g.c.col + first * p.c_step;
        for (std::int64_t l = 0; l < count; ++l) to[l * p.c_step] = sums.lane[l];
      }
  }
}

}  // namespace

void inLanes(const SmallProducts& products, std::int64_t begin, std::int64_t end) {
  products.fused ? multiply<true>(products, begin, end) : multiply<false>(products, begin, end);
}

}  // namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE
