#pragma once
#include <cstdint>

#include "engine/blas/Arithmetic.hpp"

namespace ipujax::engine::blas {

/// A matrix of elements anywhere in memory; strides in elements.
struct ConstMatrix {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t row = 0;
  std::int64_t col = 1;

  const void* at(std::int64_t i, std::int64_t j) const {
    return static_cast<const char*>(data) +
           (i * row + j * col) * static_cast<std::int64_t>(sizeOf(type));
  }
  /// Where elements are words as they lie in memory.
  template <class W>
  const W* words(std::int64_t i, std::int64_t j) const {
    return static_cast<const W*>(data) + i * row + j * col;
  }
  ConstMatrix transposed() const { return {data, type, col, row}; }
};
struct Matrix {
  void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t row = 0;
  std::int64_t col = 1;
};

/// `count` elements, `stride` apart, as floats side by side.
void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, float* out);
/// The other way: rounds to the type's nearest value.
void storeRow(const float* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count);

/// `count` elements, neighbours along k and `stride` apart, as wordsOf<M>(count) words.
template <class M>
void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, Word<M>* out);
/// `count` words, each of the `num_k` <= kPerWord neighbours along k that begin at an element of
/// the row; neighbours are `k_stride` apart.
template <class M>
void loadAcross(const void* data, ElementType type, std::int64_t offset, std::int64_t k_stride,
                std::int64_t num_k, std::int64_t stride, std::int64_t count, Word<M>* out);
/// Writes sums, rounded or cut to the type.
template <class M>
void storeRow(const Word<M>* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count);

/// Columns [col, col + cols) and rows [k, k + num_k) of B as one panel of wordsOf(num_k) rows,
/// columns past `cols` zero.
template <class M>
void packPanel(const ConstMatrix& b, std::int64_t k, std::int64_t num_k, std::int64_t col,
               std::int64_t cols, Word<M>* panel);

/// Where a packed or untouched left operand lies for the micro kernel; strides in words.
template <class M>
struct LeftBlock {
  const Word<M>* data = nullptr;
  std::int64_t row = 0;  ///< stride between rows inside one row block
  std::int64_t k = 1;
  std::int64_t block = 0;  ///< stride between row blocks of `rows_per_block`
};
std::int64_t leftWords(std::int64_t rows, std::int64_t kc);
/// Rows [m, m + rows) and columns [k, k + num_k) of A, in row blocks of `per_block`; `buffer` has
/// leftWords(rows, wordsOf(num_k)) words.
template <class M>
LeftBlock<M> packLeft(const ConstMatrix& a, std::int64_t m, std::int64_t rows, std::int64_t k,
                      std::int64_t num_k, std::int64_t per_block, Word<M>* buffer);

}  // namespace ipujax::engine::blas
