#include "engine/blas/Pack.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/Half.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/Rows.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::blas {
namespace {

constexpr std::int64_t kRowGap = 16;  ///< keeps packed rows in different cache sets
constexpr std::int64_t kPageBytes = 4096;

template <class W>
void copyRow(const W* in, std::int64_t in_stride, W* out, std::int64_t out_stride,
             std::int64_t count) {
  if (in_stride == 1 && out_stride == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(W));
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i * out_stride] = in[i * in_stride];
  }
}

/// Copies fewer words than the width of a panel, without a function call.
template <class W>
void copyFew(const W* in, W* out, std::int64_t count) {
  const auto copy = [&]<std::size_t kCount>(std::integral_constant<std::size_t, kCount>) {
    if (!(count & static_cast<std::int64_t>(kCount))) return;
    std::memcpy(out, in, kCount * sizeof(W));
    in += kCount;
    out += kCount;
  };
  copy(std::integral_constant<std::size_t, 8>{});
  copy(std::integral_constant<std::size_t, 4>{});
  copy(std::integral_constant<std::size_t, 2>{});
  copy(std::integral_constant<std::size_t, 1>{});
}

/// Copies `count` rows, `row` words apart, to a panel.
template <class M>
void copyPanel(const Word<M>* in, std::int64_t row, std::int64_t count, std::int64_t cols,
               Word<M>* panel) {
  constexpr std::int64_t kWidth = kPanel<M>;
  if (cols == kWidth) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(panel + i * kWidth, in + i * row, kWidth * sizeof(Word<M>));
  } else {
    for (std::int64_t i = 0; i < count; ++i) copyFew(in + i * row, panel + i * kWidth, cols);
  }
}

const void* moved(const void* data, ElementType type, std::int64_t elements) {
  return static_cast<const char*>(data) + elements * static_cast<std::int64_t>(sizeOf(type));
}

}  // namespace

void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, float* out) {
  if (type == ElementType::kFloat)
    return copyRow(static_cast<const float*>(data) + offset, stride, out, 1, count);
  const std::uint16_t* in = static_cast<const std::uint16_t*>(data) + offset;
  if (stride == 1) return simd::halfToFloat(in, out, count);
  constexpr std::int64_t kChunk = 64;
  std::uint16_t gathered[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t n = std::min(kChunk, count - done);
    for (std::int64_t i = 0; i < n; ++i) gathered[i] = in[(done + i) * stride];
    simd::halfToFloat(gathered, out + done, n);
  }
}

void storeRow(const float* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count) {
  if (type == ElementType::kFloat)
    return copyRow(in, 1, static_cast<float*>(data) + offset, stride, count);
  std::uint16_t* out = static_cast<std::uint16_t*>(data) + offset;
  if (stride == 1) return simd::floatToHalf(in, out, count);
  constexpr std::int64_t kChunk = 64;
  std::uint16_t rounded[kChunk];
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t n = std::min(kChunk, count - done);
    simd::floatToHalf(in + done, rounded, n);
    for (std::int64_t i = 0; i < n; ++i) out[(done + i) * stride] = rounded[i];
  }
}

template <class M>
void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, Word<M>* out) {
  if constexpr (std::is_same_v<M, Floats>) {
    loadRow(data, type, offset, stride, count, out);
  } else if constexpr (std::is_same_v<M, ShortPairs>) {
    rowsOf(type).loadPairs(moved(data, type, offset), stride, count, out);
  } else if (isWord<M>(type)) {
    copyRow(static_cast<const Word<M>*>(data) + offset, stride, out, 1, count);
  } else if constexpr (std::is_same_v<M, Ints>) {
    rowsOf(type).load(moved(data, type, offset), stride, count, out);
  } else if constexpr (std::is_same_v<M, LongInts>) {
    rowsOf(type).loadLong(moved(data, type, offset), stride, count, out);
  }
}

template <class M>
void loadAcross(const void* data, ElementType type, std::int64_t offset, std::int64_t k_stride,
                std::int64_t num_k, std::int64_t stride, std::int64_t count, Word<M>* out) {
  if constexpr (std::is_same_v<M, ShortPairs>) {
    rowsOf(type).pairRows(moved(data, type, offset), k_stride, num_k, stride, count, out, count);
  } else {
    loadRow<M>(data, type, offset, stride, count, out);
  }
}

template <class M>
void storeRow(const Word<M>* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count) {
  if constexpr (std::is_same_v<M, Floats>) {
    storeRow(in, data, type, offset, stride, count);
  } else if (isSum<M>(type)) {
    copyRow(in, 1, static_cast<Word<M>*>(data) + offset, stride, count);
  } else if constexpr (std::is_same_v<Word<M>, std::uint32_t>) {
    rowsOf(type).store(in, const_cast<void*>(moved(data, type, offset)), stride, count);
  } else if constexpr (std::is_same_v<M, LongInts>) {
    rowsOf(type).storeLong(in, const_cast<void*>(moved(data, type, offset)), stride, count);
  }
}

template <class M>
void packPanel(const ConstMatrix& b, std::int64_t k, std::int64_t num_k, std::int64_t col,
               std::int64_t cols, Word<M>* panel) {
  constexpr std::int64_t kWidth = kPanel<M>;
  const std::int64_t words = wordsOf<M>(num_k);
  if (b.row == 1 && b.col != 1) {
    if (isWord<M>(b.type))
      return micro<M>().packTransposed(b.words<Word<M>>(k, col), b.col, words, cols, panel);
    Workspace workspace;
    auto* rows = workspace.get<Word<M>>(words * kWidth);
    for (std::int64_t j = 0; j < cols; ++j)
      loadRow<M>(b.at(k, col + j), b.type, 0, 1, num_k, rows + j * words);
    return micro<M>().packTransposed(rows, words, words, cols, panel);
  }
  if (cols < kWidth) std::fill(panel, panel + words * kWidth, Word<M>(0));
  if constexpr (std::is_same_v<M, ShortPairs>) {
    rowsOf(b.type).pairRows(b.at(k, col), b.row, num_k, b.col, cols, panel, kWidth);
  } else if (isWord<M>(b.type) && b.col == 1) {
    copyPanel<M>(b.words<Word<M>>(k, col), b.row, words, cols, panel);
  } else {
    for (std::int64_t i = 0; i < words; ++i)
      loadRow<M>(b.at(k + i, col), b.type, 0, b.col, cols, panel + i * kWidth);
  }
}

std::int64_t leftWords(std::int64_t rows, std::int64_t kc) {
  return (rows + kMaxRows) * (kc + kRowGap);
}

template <class M>
LeftBlock<M> packLeft(const ConstMatrix& a, std::int64_t m, std::int64_t rows, std::int64_t k,
                      std::int64_t num_k, std::int64_t per_block, Word<M>* buffer) {
  using W = Word<M>;
  const std::int64_t kc = wordsOf<M>(num_k);
  if (a.row == 1 && a.col != 1) {  // columns are contiguous: one panel for each row block
    Workspace workspace;
    W* line = workspace.get<W>(rows);
    for (std::int64_t i = 0; i < kc; ++i) {
      const W* source = line;
      const std::int64_t first = i * M::kPerWord;
      if (isWord<M>(a.type)) {
        source = a.words<W>(m, k + i);
      } else {
        const std::int64_t left = std::min(M::kPerWord, num_k - first);
        loadAcross<M>(a.at(m, k + first), a.type, 0, a.col, left, 1, rows, line);
      }
      for (std::int64_t r = 0; r < rows; r += per_block)
        std::memcpy(buffer + r * kc + i * per_block, source + r,
                    static_cast<std::size_t>(std::min(per_block, rows - r)) * sizeof(W));
    }
    return {buffer, 1, per_block, per_block * kc};
  }
  constexpr auto kPage = kPageBytes / static_cast<std::int64_t>(sizeof(W));
  if (isWord<M>(a.type) && a.col == 1 && (a.row % kPage != 0 || rows <= 4))
    return {a.words<W>(m, k), a.row, 1, per_block * a.row};
  const std::int64_t stride = kc + kRowGap;
  for (std::int64_t r = 0; r < rows; ++r)
    loadRow<M>(a.at(m + r, k), a.type, 0, a.col, num_k, buffer + r * stride);
  return {buffer, stride, 1, per_block * stride};
}

#define IPUJAX_INSTANTIATE(M)                                                                     \
  template void loadRow<M>(const void*, ElementType, std::int64_t, std::int64_t, std::int64_t,    \
                           Word<M>*);                                                             \
  template void loadAcross<M>(const void*, ElementType, std::int64_t, std::int64_t, std::int64_t, \
                              std::int64_t, std::int64_t, Word<M>*);                              \
  template void storeRow<M>(const Word<M>*, void*, ElementType, std::int64_t, std::int64_t,       \
                            std::int64_t);                                                        \
  template void packPanel<M>(const ConstMatrix&, std::int64_t, std::int64_t, std::int64_t,        \
                             std::int64_t, Word<M>*);                                             \
  template LeftBlock<M> packLeft<M>(const ConstMatrix&, std::int64_t, std::int64_t, std::int64_t, \
                                    std::int64_t, std::int64_t, Word<M>*);
IPUJAX_INSTANTIATE(Floats)
IPUJAX_INSTANTIATE(Doubles)
IPUJAX_INSTANTIATE(Ints)
IPUJAX_INSTANTIATE(LongInts)
IPUJAX_INSTANTIATE(ShortPairs)
#undef IPUJAX_INSTANTIATE

}  // namespace ipujax::engine::blas
