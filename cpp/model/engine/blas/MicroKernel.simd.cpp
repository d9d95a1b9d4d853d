#include "engine/blas/MicroKernel.hpp"

#include <algorithm>
#include <utility>

#include "engine/blas/Lanes.hpp"

namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE {
namespace {

template <class M>
constexpr int kPerPanel = static_cast<int>(kPanel<M>) / Lanes<M>::kCount;  ///< vectors

/// Writes the first `count` sums of a vector.
template <class M>
void writePart(Word<M>* c, typename Lanes<M>::Vec sums, std::int64_t count, bool accumulate) {
  alignas(64) Word<M> row[Lanes<M>::kCount];
  Lanes<M>::store(row, sums);
  for (std::int64_t j = 0; j < count; ++j) c[j] = accumulate ? c[j] + row[j] : row[j];
}

template <class M, int kRows, int kVectors>
inline void writeTile(const MicroCall<Word<M>>& call,
                      const typename Lanes<M>::Vec (&acc)[kRows][kVectors]) {
  using L = Lanes<M>;
  for (int i = 0; i < kRows; ++i) {
    Word<M>* c = call.c + i * call.c_row;
    for (int j = 0; j < kVectors; ++j) {
      Word<M>* p = c + j * L::kCount;
      const std::int64_t left = call.cols - j * L::kCount;
      if (left >= L::kCount) {
        L::store(p, call.accumulate ? L::add(L::load(p), acc[i][j]) : acc[i][j]);
      } else if (left > 0) {
        writePart<M>(p, acc[i][j], left, call.accumulate);
      }
    }
  }
}

/// Keeps kRows x kNumPanels panels of accumulators in registers; three rows share a pointer.
template <class M, int kRows, int kNumPanels>
void tile(const MicroCall<Word<M>>& call) {
  using L = Lanes<M>;
  constexpr int kVectors = kNumPanels * kPerPanel<M>;
  constexpr int kTriples = (kRows + 2) / 3;
  typename L::Vec acc[kRows][kVectors];
#pragma GCC unroll 64
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) acc[i][j] = typename L::Vec{};
  const std::int64_t row = call.a_row;
  const std::int64_t step = call.a_k;
  const std::int64_t b_k = call.b_k;
  const std::int64_t b_panel = call.b_panel;
  const Word<M>* b = call.b;
  for (std::int64_t s = 0; s < call.num_segments; ++s) {
    const Word<M>* base = call.a + (call.segments ? call.segments[s] : 0);
    const Word<M>* p[kTriples];
    for (int t = 0; t < kTriples; ++t) p[t] = base + 3 * t * row;
    for (std::int64_t k = 0; k < call.kc; ++k) {
      typename L::Vec bv[kVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j)
        bv[j] = L::load(b + (j / kPerPanel<M>)*b_panel + (j % kPerPanel<M>)*L::kCount);
#pragma GCC unroll 64
      for (int i = 0; i < kRows; ++i) {
        const auto av = L::splat(p[i / 3][(i % 3) * row]);
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) acc[i][j] = L::multiplyAdd(av, bv[j], acc[i][j]);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTriples; ++t) p[t] += step;
      b += b_k;
    }
  }
  writeTile<M, kRows, kVectors>(call, acc);
}

template <class M, int kNumPanels, int... kRows>
void fill(MicroTable<M>& table, std::integer_sequence<int, kRows...>) {
  ((table.fn[kNumPanels][kRows + 1] = &tile<M, kRows + 1, kNumPanels>), ...);
}

#if defined(__AVX2__)
/// Transposes an 8 x 8 block of 4-byte words.
inline void transpose8(const void* source, std::int64_t ld, void* target) {
  const auto* src = static_cast<const float*>(source);
  auto* dst = static_cast<float*>(target);
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
    _mm256_storeu_ps(dst + k * kPanel<Floats>, _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
    _mm256_storeu_ps(dst + (k + 4) * kPanel<Floats>, _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
  }
}
#endif

template <class M>
void packTransposed(const Word<M>* src, std::int64_t ld, std::int64_t kc, std::int64_t cols,
                    Word<M>* dst) {
  constexpr std::int64_t kWidth = kPanel<M>;
  std::int64_t k = 0;
#if defined(__AVX2__)
  if (sizeof(Word<M>) == 4 && cols == kWidth) {
    for (; k + 8 <= kc; k += 8) {
      transpose8(src + k, ld, dst + k * kWidth);
      transpose8(src + 8 * ld + k, ld, dst + k * kWidth + 8);
    }
  }
#endif
  for (; k < kc; ++k) {
    for (std::int64_t j = 0; j < cols; ++j) dst[k * kWidth + j] = src[j * ld + k];
    for (std::int64_t j = cols; j < kWidth; ++j) dst[k * kWidth + j] = Word<M>(0);
  }
}

template <class M>
Word<M> dot(const Word<M>* x, const Word<M>* y, std::int64_t n) {
  using L = Lanes<M>;
  constexpr int kChains = 4;
  constexpr int kLanes = L::kCount;
  typename L::Vec acc[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes)
    for (int c = 0; c < kChains; ++c)
      acc[c] = L::multiplyAdd(L::load(x + i + c * kLanes), L::load(y + i + c * kLanes), acc[c]);
  for (; i + kLanes <= n; i += kLanes)
    acc[0] = L::multiplyAdd(L::load(x + i), L::load(y + i), acc[0]);
  if (M::kPerWord > 1 && i < n) {
    Word<M> last[2][kLanes] = {};
    std::copy_n(x + i, n - i, last[0]);
    std::copy_n(y + i, n - i, last[1]);
    acc[0] = L::multiplyAdd(L::load(last[0]), L::load(last[1]), acc[0]);
    i = n;
  }
  alignas(64) Word<M> lanes[kLanes];
  L::store(lanes, L::add(L::add(acc[0], acc[1]), L::add(acc[2], acc[3])));
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  Word<M> sum = lanes[0];
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class M>
MicroTable<M> make() {
  constexpr TileSizes kSizes = tileSizes<M>();
  MicroTable<M> table{};
  table.panels = kSizes.panels;
  for (int p = 0; p <= kMaxPanels; ++p) table.max_rows[p] = kSizes.rows[p];
  fill<M, 1>(table, std::make_integer_sequence<int, kSizes.rows[1]>{});
  fill<M, 2>(table, std::make_integer_sequence<int, kSizes.rows[2]>{});
  fill<M, 3>(table, std::make_integer_sequence<int, kSizes.rows[3]>{});
  fill<M, 4>(table, std::make_integer_sequence<int, kSizes.rows[4]>{});
  table.packTransposed = packTransposed<M>;
  table.dot = dot<M>;
  return table;
}

}  // namespace

template <class M>
const MicroTable<M>& microTable() {
  static const MicroTable<M> table = make<M>();
  return table;
}

template const MicroTable<Floats>& microTable<Floats>();
template const MicroTable<Doubles>& microTable<Doubles>();
template const MicroTable<Ints>& microTable<Ints>();
template const MicroTable<LongInts>& microTable<LongInts>();
template const MicroTable<ShortPairs>& microTable<ShortPairs>();

}  // namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE
